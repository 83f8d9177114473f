import type { Duplex } from "node:stream";
import ssh2 from "ssh2";
import type { MachineRow } from "./temporary-simulator.ts";

export interface SshResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface SshSignIn {
  readonly username?: string;
  readonly privateKey?: string;
  readonly password?: string;
  /** A connection through somebody else, in place of one of its own. */
  readonly through?: Duplex;
}

/** Signed in to a machine, by its row of the inventory. `hostKey` is the key that it showed. */
export async function signIn(
  row: Pick<MachineRow, "ssh_endpoint" | "ssh_username" | "ssh_private_key">,
  how: SshSignIn = {},
) {
  const [host = "", port = ""] = row.ssh_endpoint.split(":");
  const client = new ssh2.Client();
  let hostKey = "";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  client
    .on("ready", resolve)
    .on("error", reject)
    .on("close", () => reject(new Error("closed")));
  client.connect({
    ...(how.through === undefined ? { host, port: Number(port) } : { sock: how.through }),
    username: how.username ?? row.ssh_username,
    ...(how.password === undefined
      ? { privateKey: how.privateKey ?? row.ssh_private_key }
      : { password: how.password }),
    hostVerifier: (key: Buffer) => {
      hostKey = `ssh-ed25519 ${key.toString("base64")}`;
      return true;
    },
  });
  await promise;
  return {
    client,
    hostKey,
    run: (command: string, options: { stdin?: string; env?: Record<string, string> } = {}) =>
      execute(client, command, options),
    forward: (address: string) => forward(client, address),
    [Symbol.dispose]: () => void client.end(),
  };
}

function execute(
  client: ssh2.Client,
  command: string,
  { stdin, env = {} }: { stdin?: string; env?: Record<string, string> },
): Promise<SshResult> {
  const { promise, resolve, reject } = Promise.withResolvers<SshResult>();
  // All listeners within the callback: a quick command's exit code may come with the very packet that opened its channel.
  client.exec(command, { env }, (error, channel) => {
    if (error !== undefined) return void reject(error);
    let [stdout, stderr] = ["", ""];
    let code: number | null = null;
    channel.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    channel.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    channel.on("exit", (given: number | null) => {
      code = given;
    });
    channel.on("close", () => resolve({ code, stdout, stderr }));
    // Without input the other end is left open, as many programs do.
    if (stdin !== undefined) channel.end(stdin);
  });
  return promise;
}

function forward(client: ssh2.Client, address: string): Promise<Duplex> {
  const [host = "", port = ""] = address.split(":");
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  client.forwardOut("127.0.0.1", 0, host, Number(port), (error, channel) =>
    error === undefined ? resolve(channel) : reject(error),
  );
  return promise;
}
