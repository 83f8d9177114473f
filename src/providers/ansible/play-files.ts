import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Play } from "../../capabilities/local/playbooks.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";

/** Where a play keeps the key that it signs in with: in memory where there is a file system of that kind. */
const IN_MEMORY = "/dev/shm";

/** A machine with all that must be known before a play may sign in to it. */
export interface KnownTarget extends SshTarget {
  /** Whole, as in known_hosts. */
  readonly hostKey: string;
}

export interface PlayFiles {
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/** Its name in the SSH configuration, whatever the machine's own name is. */
const HOST = "machine";

/** Writes all that a play is given, for nobody else to read. */
export async function writePlayFiles(target: KnownTarget, play: Play, path: string): Promise<PlayFiles> {
  const directory = await mkdtemp(join(IN_MEMORY, "millwright-play-")).catch(() =>
    mkdtemp(join(tmpdir(), "millwright-play-")),
  );
  await chmod(directory, 0o700);
  const put = (name: string, text: string) => writeFile(join(directory, name), text, { mode: 0o600 });
  if (!("privateKey" in target.credentials)) throw new Error("a play signs in with a key");
  await put("key", `${target.credentials.privateKey.trimEnd()}\n`);
  await put("known_hosts", knownHosts(target));
  await put("ssh_config", sshConfig(target, directory));
  await put("inventory", `${play.machineId} ansible_host=${HOST} ansible_connection=ssh\n`);
  await put("args.yml", argsFile(play.args));
  await put("playbook.yml", play.text);
  await put("ansible.cfg", ""); // that of the server's own user, or of its host, is not for plays
  return {
    directory,
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
