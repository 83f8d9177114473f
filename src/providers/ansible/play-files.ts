import { once } from "node:events";
import { chmod, lstat, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Play } from "../../capabilities/local/playbooks.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";

/** Where a play keeps the key that it signs in with: in memory where there is a file system of that kind. */
const IN_MEMORY = "/dev/shm";
const PREFIX = "millwright-play-";
/** A socket that answers for as long as the server process lives that wrote the files, also to servers in other containers. */
const OWNER = "owner";

/** A machine with all that must be known before a play may sign in to it. */
export interface KnownTarget extends SshTarget {
  /** Whole, as in known_hosts. */
  readonly hostKey: string;
}

export interface PlayFiles {
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  /** Removes all of it. */
  remove(): Promise<void>;
}

/** Its name in the SSH configuration, whatever the machine's own name is. */
const HOST = "machine";

/** Writes all that a play is given, for nobody else to read. What cannot be written whole is removed. */
export async function writePlayFiles(target: KnownTarget, play: Play, path: string): Promise<PlayFiles> {
  const directory = await mkdtemp(join(IN_MEMORY, PREFIX)).catch(() => mkdtemp(join(tmpdir(), PREFIX)));
  const owner = createServer((visitor) => visitor.destroy()).unref();
  const remove = async () => {
    // Something that got away may still write to it. What cannot be removed now, the sweep of the next start removes.
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    owner.close();
  };
  try {
    await chmod(directory, 0o700);
    await once(owner.listen(join(directory, OWNER)), "listening"); // before the key is there
    await putFiles(directory, target, play);
  } catch (error) {
    await remove().catch(() => undefined);
    throw error;
  }
  return { directory, remove, ...commandLine(directory, path) };
}

/** Removes the files of plays whose server process was killed together with their supervisor, such as with its container. */
export async function sweepPlayFiles(): Promise<void> {
  for (const place of new Set([IN_MEMORY, tmpdir()])) {
    const names = await readdir(place).catch(() => []);
    for (const name of names.filter((each) => each.startsWith(PREFIX))) {
      const directory = join(place, name);
      const found = await lstat(directory).catch(() => undefined);
      if (!found?.isDirectory() || found.uid !== process.getuid?.()) continue;
      if (await isAbandoned(directory)) await rm(directory, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

/** Only a socket that nobody listens on proves it. Where there is none yet, there is no key either. */
async function isAbandoned(directory: string): Promise<boolean> {
  const visit = connect(join(directory, OWNER));
  try {
    await once(visit, "connect");
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    visit.destroy();
  }
}

async function putFiles(directory: string, target: KnownTarget, play: Play): Promise<void> {
  const put = (name: string, text: string) => writeFile(join(directory, name), text, { mode: 0o600 });
  if (!("privateKey" in target.credentials)) throw new Error("a play signs in with a key");
  await put("key", `${target.credentials.privateKey.trimEnd()}\n`);
  await put("known_hosts", knownHosts(target));
  await put("ssh_config", sshConfig(target, directory));
  await put("inventory", `${play.machineId} ansible_host=${HOST} ansible_connection=ssh\n`);
  await put("args.yml", argsFile(play.args));
  await put("playbook.yml", play.text);
  await put("ansible.cfg", ""); // that of the server's own user, or of its host, is not for plays
}

function commandLine(directory: string, path: string): Pick<PlayFiles, "env" | "args"> {
  return {
    env: {
      PATH: path,
      HOME: directory,
      TMPDIR: directory,
      LANG: "C.UTF-8",
      PYTHONUNBUFFERED: "1",
      ANSIBLE_CONFIG: join(directory, "ansible.cfg"),
      ANSIBLE_HOME: directory,
      ANSIBLE_LOCAL_TEMP: join(directory, "tmp"),
      ANSIBLE_HOST_KEY_CHECKING: "True",
      ANSIBLE_SSH_ARGS: `-F ${join(directory, "ssh_config")}`,
      ANSIBLE_RETRY_FILES_ENABLED: "False",
      ANSIBLE_NOCOLOR: "1",
    },
    args: [
      "-i",
      join(directory, "inventory"),
      "-e",
      `@${join(directory, "args.yml")}`,
      join(directory, "playbook.yml"),
    ],
  };
}

/**
 * One dictionary, so that no value can take the place of a setting such as `ansible_connection`; and tagged, so that templates in values
 * are text: a template is carried out on our side.
 */
function argsFile(args: Play["args"]): string {
  const entries = Object.entries(args);
  if (entries.length === 0) return "millwright_args: {}\n";
  const lines = entries.map(([name, value]) => `  ${JSON.stringify(name)}: !unsafe ${JSON.stringify(value)}`);
  return ["millwright_args:", ...lines, ""].join("\n");
}

const nameOfJump = (at: number): string => `jump-${at}`;
const keyOf = (key: string): string => key.trim().split(/\s+/).slice(0, 2).join(" ");

const knownHosts = ({ hostKey, jumpHosts }: KnownTarget): string =>
  [`${HOST} ${keyOf(hostKey)}`, ...jumpHosts.map((jump, at) => `${nameOfJump(at)} ${keyOf(jump.hostKey)}`), ""].join(
    "\n",
  );

function sshConfig({ address, port, username, jumpHosts }: KnownTarget, directory: string): string {
  const host = (name: string, at: { readonly address: string; readonly port: number; readonly username: string }) => [
    `Host ${name}`,
    `  HostName ${at.address}`,
    `  Port ${at.port}`,
    `  User ${JSON.stringify(at.username)}`,
    `  HostKeyAlias ${name}`,
  ];
  const through = jumpHosts.map((_, at) => nameOfJump(at)).join(",");
  return [
    ...host(HOST, { address, port, username }),
    ...(through === "" ? [] : [`  ProxyJump ${through}`]),
    ...jumpHosts.flatMap((jump, at) => host(nameOfJump(at), jump)),
    "Host *",
    `  UserKnownHostsFile ${join(directory, "known_hosts")}`,
    "  GlobalKnownHostsFile /dev/null",
    "  StrictHostKeyChecking yes",
    `  IdentityFile ${join(directory, "key")}`,
    "  IdentitiesOnly yes",
    "  PreferredAuthentications publickey",
    "  BatchMode yes",
    "  ControlMaster no",
    "  ConnectTimeout 10",
    "  ServerAliveInterval 5",
    "  ServerAliveCountMax 3",
    "",
  ].join("\n");
}
