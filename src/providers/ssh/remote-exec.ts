import type { ClientChannel } from "ssh2";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { RemoteExec, RemoteExit, RemoteScript } from "../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { messageOf } from "../../kernel/errors.ts";
import { type Duration, describeDuration, seconds } from "../../kernel/time/duration.ts";
import { addressOf, nameOfHost, type SshConnection, settleWithin } from "./connect.ts";
import type { SshConnections } from "./connections.ts";
import { quoted, scriptWithVariables } from "./script-text.ts";

export interface RemoteExecOptions {
  /** Output of one script that is passed on; more is left out, and said so. */
  readonly mostOutput?: number;
  /** How long the server may take to begin with a command. */
  readonly startTimeout?: Duration;
}

/** What is kept of the output for the caller, beside what is passed on. */
const KEPT_OUTPUT = 64 * 1_024;
const LARGEST_FILE = 64 * 1_024;
const READ_FILE = seconds(15);
const NO_SUCH_FILE = 44;
const SHELL = "sh -s";
/**
 * An account that may not become root without a password goes on as it is, and what it runs says what it lacks. The first sudo must not
 * read the script, which is waiting at the input.
 */
const SHELL_AS_ROOT = `sh -c 'if sudo -n true </dev/null >/dev/null 2>&1; then exec sudo -n ${SHELL}; fi; exec ${SHELL}'`;

export function createRemoteExec(connections: SshConnections, options: RemoteExecOptions = {}): RemoteExec {
  const { mostOutput = 4 * 1_024 * 1_024, startTimeout = seconds(10) } = options;

  const run = (connection: SshConnection, target: SshTarget, script: RemoteScript, call: CallContext) =>
    runScript({ connection, target, script, call, mostOutput, startTimeout });

  return {
    run: (target, script, call) => connections.use(target, call, (connection) => run(connection, target, script, call)),

    readHostKey: (target, call) => connections.hostKey(target, call),

    readFile: (target, path, call) =>
      connections.use(target, call, async (connection) => {
        const script = `if [ -e ${quoted(path)} ]; then cat ${quoted(path)}; else exit ${NO_SUCH_FILE}; fi\n`;
        const exit = await run(connection, target, { script, env: {}, timeout: READ_FILE }, call);
        const { hostKey } = connection;
        if (exit.code === NO_SUCH_FILE) return { text: undefined, hostKey };
        if (exit.code === 0 && exit.output.length < LARGEST_FILE) return { text: exit.output, hostKey };
        const why =
          exit.code === 0 ? `it is larger than ${LARGEST_FILE} bytes` : `reading it ended with ${describeExit(exit)}`;
        throw new DeviceFailure("refused_by_device", "ssh", `${nameOfHost(target)}: ${path} cannot be read: ${why}`, {
          disposition: "retry",
          facts: { address: addressOf(target) },
        });
      }),
  };
}

const describeExit = ({ code, signal }: Pick<RemoteExit, "code" | "signal">): string =>
  code === null ? `signal ${signal ?? "unknown"}` : `exit code ${code}`;

interface Running {
  readonly connection: SshConnection;
  readonly target: SshTarget;
  readonly script: RemoteScript;
  readonly call: CallContext;
  readonly mostOutput: number;
  readonly startTimeout: Duration;
}

async function runScript(running: Running): Promise<RemoteExit> {
  const { target, script, call } = running;
  const begun = await openChannel(running);
  const { channel } = begun;
  const output = collectOutput(channel, running);
  try {
    // Not more than the lease: whoever takes over must find that nobody of ours is at it any more.
    const deadline = call.mayTouchDevice(script.timeout);
    return await settleWithin<RemoteExit>(
      { host: target, what: `the script within its ${describeDuration(script.timeout)}`, deadline, call },
      (resolve, reject) => {
        channel.on("error", (error: Error) => reject(broken(target, messageOf(error))));
        channel.once("close", () =>
          begun.exit === undefined
            ? reject(broken(target, "the connection ended before the script did"))
            : resolve({ ...begun.exit, output: output() }),
        );
        channel.end(scriptWithVariables(script.script, script.env));
      },
    );
  } catch (error) {
    // Servers that know the request end the script with it; on the others it ends at its next output.
    channel.signal("TERM");
    channel.close();
    throw error;
  }
}

const broken = (target: SshTarget, why: string): DeviceFailure =>
  new DeviceFailure("unreachable", "ssh", `${nameOfHost(target)}: ${why}`, { facts: { address: addressOf(target) } });

interface BegunCommand {
  readonly channel: ClientChannel;
  /** Undefined until it has ended. */
  exit: Pick<RemoteExit, "code" | "signal"> | undefined;
}

/** Listened to from the very beginning: a command that ends at once does so in the same breath in which it begins. */
function listenTo(channel: ClientChannel): BegunCommand {
  const begun: BegunCommand = { channel, exit: undefined };
  channel.once("exit", (code: number | null, signal?: string) => {
    begun.exit = { code, signal: signal ?? null };
  });
  channel.on("error", () => undefined); // those who wait listen for themselves
  return begun;
}

function openChannel({ connection, target, script, call, startTimeout }: Running): Promise<BegunCommand> {
  const deadline = call.mayTouchDevice(startTimeout);
  // One that is begun too late would stay for as long as the connection, of which each has room for a few.
  const discard = ({ channel }: BegunCommand) => channel.close();
  const around = { host: target, what: "the start of a command", deadline, call, discard };
  return settleWithin<BegunCommand>(around, (resolve, reject) => {
    void connection.closed.then(() => reject(broken(target, "the connection was lost")));
    const began = (error: Error | undefined, channel: ClientChannel) =>
      error === undefined
        ? resolve(listenTo(channel))
        : reject(broken(target, `it does not start a command: ${messageOf(error)}`));
    try {
      connection.client.exec(script.asRoot && target.username !== "root" ? SHELL_AS_ROOT : SHELL, began);
    } catch (error) {
      // Thrown, and not told by its callback, once the other side has hung up and the connection is not closed yet.
      reject(broken(target, `the connection was lost: ${messageOf(error)}`));
    }
  });
}

/** Passes output on up to the cap, keeps the beginning, and reads the rest away, so that the script does not block. */
function collectOutput(channel: ClientChannel, { script, mostOutput }: Running): () => string {
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let passed = 0;
  const take = (stream: "stdout" | "stderr") => (chunk: Buffer) => {
    if (stream === "stdout" && keptBytes < KEPT_OUTPUT) {
      kept.push(chunk.subarray(0, KEPT_OUTPUT - keptBytes));
      keptBytes += chunk.length;
    }
    const room = mostOutput - passed;
    passed += chunk.length;
    if (room > 0) script.onOutput?.(chunk.subarray(0, room), stream);
    if (room > 0 && chunk.length > room) {
      script.onOutput?.(Buffer.from(`\n[output beyond ${mostOutput} bytes is left out]\n`), "stderr");
    }
  };
  channel.on("data", take("stdout"));
  channel.stderr.on("data", take("stderr"));
  return () => Buffer.concat(kept).toString("utf8");
}
