import type { Connection, ServerChannel } from "ssh2";
import type { Machine } from "../devices/machine.ts";
import { runScript } from "../shell/interpreter.ts";
import type { ShellSurroundings } from "../shell/shell-session.ts";

const MOST_STDIN_BYTES = 1_048_576;
const FAILED = 255;

export interface CommandHost {
  readonly machine: Machine;
  readonly user: string;
  readonly surroundings: ShellSurroundings;
  readonly log: (line: string) => void;
}

/** Commands by `exec`, with environment; no terminal, no shell, no files. */
export function serveCommands(client: Connection, host: CommandHost): void {
  const gone = new AbortController();
  client.on("close", () => gone.abort());
  client.on("session", (accept) => {
    const session = accept();
    const env: Record<string, string> = {
      HOME: host.user === "root" ? "/root" : `/home/${host.user}`,
      USER: host.user,
    };
    session.on("env", (acceptEnv, _reject, { key, val }) => {
      env[key] = val;
      acceptEnv?.();
    });
    session.on("exec", (acceptExec, _reject, { command }) => {
      host.machine.countSshCommand();
      run(acceptExec(), command, { host, env, signal: gone.signal }).catch((error: unknown) => {
        if (!gone.signal.aborted)
          host.log(`ssh ${host.machine.spec.id}: ${error instanceof Error ? error.stack : String(error)}`);
      });
    });
  });
}

async function run(
  channel: ServerChannel,
  command: string,
  { host, env, signal }: { host: CommandHost; env: Record<string, string>; signal: AbortSignal },
): Promise<void> {
  channel.on("error", () => {});
  const closed = new AbortController();
  channel.on("close", () => closed.abort());
  const either = AbortSignal.any([signal, closed.signal]);
  const io = {
    stdin: readOnce(channel),
    out: (text: string) => void channel.write(text),
    error: (text: string) => void channel.stderr.write(text),
  };
  const { machine, user, surroundings } = host;
  const code = await runScript(command, { machine, user, surroundings, signal: either }, { io, env }).catch(
    (error: unknown) => {
      either.throwIfAborted();
      channel.exit(FAILED);
      channel.end();
      throw error;
    },
  );
  channel.exit(code);
  channel.end();
}

/** Reads to the end when first asked; whoever asks again finds the end. */
function readOnce(channel: ServerChannel): () => Promise<string> {
  let asked = false;
  return () => {
    if (asked) return Promise.resolve("");
    asked = true;
    const { promise, resolve } = Promise.withResolvers<string>();
    const chunks: Buffer[] = [];
    let size = 0;
    channel.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MOST_STDIN_BYTES) chunks.push(chunk);
    });
    const end = () => resolve(Buffer.concat(chunks).toString("utf8"));
    channel.on("end", end).on("close", end);
    return promise;
  };
}
