import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import ssh2 from "ssh2";
import type { SshTarget } from "../../../src/capabilities/ssh-target.ts";

const SSHD = "/usr/sbin/sshd";

/** Tests that are skipped without it say so in their title (`needing`). */
export const hasSshd = existsSync(SSHD);

export interface RealSshServer {
  readonly target: SshTarget;
  readonly process: ChildProcess;
  readonly directory: string;
  stop(): Promise<void>;
}

/** By OpenSSH's own tool: of the keys that ssh2 makes, OpenSSH refuses one now and then. */
export function newKey(): { readonly privateKey: string; readonly publicKey: string } {
  const directory = mkdtempSync(join(tmpdir(), "millwright-key-"));
  try {
    const file = join(directory, "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file]);
    return { privateKey: readFileSync(file, "utf8"), publicKey: readFileSync(`${file}.pub`, "utf8").trim() };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Has these servers take the key that somebody signs in with elsewhere, as jump hosts do. */
export async function accept({ credentials }: SshTarget, servers: readonly RealSshServer[]): Promise<void> {
  if (!("privateKey" in credentials)) throw new Error("only keys are accepted");
  const key = ssh2.utils.parseKey(credentials.privateKey);
  if (key instanceof Error) throw key;
  const line = `${key.type} ${key.getPublicSSH().toString("base64")}\n`;
  for (const { directory } of servers) {
    const file = join(directory, "authorized_keys");
    await writeFile(file, (await readFile(file, "utf8")) + line);
  }
}

/** In the server's own view of the file system alone. */
const withSmallDisk = (size: string, path: string): readonly string[] => [
  "unshare",
  "-m",
  "sh",
  "-c",
  'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@"',
  "sh",
  size,
  path,
];

/** For the name of what is skipped: "skipped where no file system can be mounted". */
export const canMount =
  process.getuid?.() === 0 &&
  spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "-o", "size=16k", "none", "/var/tmp"]).status === 0;

/** Where the server alone sees an account `ops` that is not root, and may become root without a password, or not. */
const withAccount = (directory: string, mayBecomeRoot: boolean): readonly string[] => {
  const files = {
    passwd: `${readFileSync("/etc/passwd", "utf8")}ops:x:54321:54321::/tmp:/bin/sh\n`,
    shadow: `${readFileSync("/etc/shadow", "utf8")}ops:*:19000:0:99999:7:::\n`,
    group: `${readFileSync("/etc/group", "utf8")}ops:x:54321:\n`,
    sudoers: `root ALL=(ALL:ALL) ALL\n${mayBecomeRoot ? "ops ALL=(ALL) NOPASSWD:ALL\n" : ""}`,
  };
  const mounts = Object.entries(files).map(([name, text]) => {
    const file = join(directory, name);
    writeFileSync(file, text, { mode: name === "sudoers" ? 0o440 : 0o644 });
    return `mount --bind '${file}' /etc/${name}`;
  });
  return ["unshare", "-m", "sh", "-c", `${mounts.join(" && ")} && exec "$@"`, "sh"];
};

/** Programs of these tests that act as another account. */
export const hasSudo = existsSync("/usr/bin/sudo");

export interface SshdOptions {
  /** It signs in as `ops`, which is not root. */
  readonly account?: { readonly mayBecomeRoot: boolean };
  /** Whoever signs in finds a file system of this size at that path, such as 16k at /var/tmp. */
  readonly smallDisk?: { readonly size: string; readonly path: string };
}

/** A server of its own, on a free port, that accepts one key. `more` goes into its settings. */
export async function startSshd(more = "", { smallDisk, account }: SshdOptions = {}): Promise<RealSshServer> {
  const directory = await mkdtemp(join(tmpdir(), "millwright-sshd-"));
  const host = newKey();
  const user = newKey();
  await writeFile(join(directory, "host_key"), host.privateKey, { mode: 0o600 });
  await writeFile(join(directory, "authorized_keys"), `${user.publicKey}\n`, { mode: 0o600 });
  await chmod(directory, 0o700);
  // As root, sshd insists on the directory into which it shuts those who have not signed in yet.
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  const port = await freePort();
  const settings = {
    Port: port,
    ListenAddress: "127.0.0.1",
    HostKey: join(directory, "host_key"),
    AuthorizedKeysFile: join(directory, "authorized_keys"),
    PidFile: "none",
    PasswordAuthentication: "no",
    KbdInteractiveAuthentication: "no",
    StrictModes: "no",
    UsePAM: "no",
    PermitRootLogin: "prohibit-password",
  };
  await writeFile(
    join(directory, "config"),
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join("") + more,
  );
  if (account) {
    // Its keys are read as the account.
    await chmod(directory, 0o755);
    await chmod(join(directory, "authorized_keys"), 0o644);
  }
  const within = account
    ? withAccount(directory, account.mayBecomeRoot)
    : smallDisk === undefined
      ? []
      : withSmallDisk(smallDisk.size, smallDisk.path);
  const [program = SSHD, ...args] = [...within, SSHD, "-D", "-e", "-f", join(directory, "config")];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  await new Promise<void>((resolve, reject) => {
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("Server listening")) resolve();
    });
    child.once("exit", () => reject(new Error(`sshd did not start: ${said}`)));
  });
  const target: SshTarget = {
    address: "127.0.0.1",
    port,
    username: account ? "ops" : userInfo().username,
    credentials: { privateKey: user.privateKey },
    hostKey: host.publicKey.split(" ").slice(0, 2).join(" "),
    jumpHosts: [],
  };
  return {
    target,
    process: child,
    directory,
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
