import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { eventually } from "../eventually.ts";

/** Debian puts the modules where only its own interpreter looks, which need not be the first on PATH. */
const PYTHON = "/usr/bin/python3";

export function isIronicInstalled(): boolean {
  try {
    execFileSync(PYTHON, ["-c", "import ironic.cmd.singleprocess, sushy"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const run = (module: string, name: string, ...args: readonly string[]) => [
  "-c",
  `import sys; sys.argv = ${JSON.stringify([name, ...args])}\nfrom ironic.cmd import ${module}; sys.exit(${module}.main())`,
];

/** OpenStack's own Ironic, API and conductor in one process, with a database of its own, on loopback. */
export interface IronicServer {
  readonly port: number;
  /** Ironic's API as its operator uses it, not through the provider. */
  ask<T = Readonly<Record<string, unknown>>>(method: string, path: string, body?: unknown): Promise<T>;
  /** A node of the name, led to the provision state "available". */
  addNode(name: string, node: Readonly<Record<string, unknown>>): Promise<void>;
  node(name: string): Promise<Readonly<Record<string, unknown>>>;
  target(name: string): BmcTarget;
  stop(): Promise<void>;
}

export interface IronicOptions {
  /** Absent: Ironic asks nobody who they are. */
  readonly httpBasic?: { readonly username: string; readonly password: string };
}

export async function startIronic({ httpBasic }: IronicOptions = {}): Promise<IronicServer> {
  const directory = await mkdtemp(join(tmpdir(), "millwright-ironic-"));
  const [port, rpcPort] = await freePorts();
  const config = join(directory, "ironic.conf");
  await Promise.all(["http", "tftp", "locks"].map((name) => mkdir(join(directory, name))));
  const users = join(directory, "users");
  if (httpBasic) await writeFile(users, `${httpBasic.username}:${bcrypt(httpBasic.password)}\n`);
  await writeFile(config, configuration({ directory, port, rpcPort, users: httpBasic && users }));
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8", HOME: directory };
  execFileSync(PYTHON, run("dbsync", "ironic-dbsync", "--config-file", config, "create_schema"), {
    env,
    stdio: "pipe",
  });
  const log = createWriteStream(join(directory, "ironic.log"));
  const child = spawn(PYTHON, run("singleprocess", "ironic", "--config-file", config), { env, stdio: "pipe" });
  child.stdout.pipe(log);
  child.stderr.pipe(log);

  const authorization = httpBasic && {
    authorization: `Basic ${Buffer.from(`${httpBasic.username}:${httpBasic.password}`).toString("base64")}`,
  };
  const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { "content-type": "application/json", "x-openstack-ironic-api-version": "1.82", ...authorization },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const node: IronicServer["node"] = (name) => ask("GET", `/v1/nodes/${name}`);
  const untilNode = (name: string, state: string) =>
    eventually(async () => (await node(name)).provision_state === state, {
      what: `node ${name} is ${state}`,
      within: 120_000,
      seen: async () => JSON.stringify(await node(name)),
    });
  await eventually(() => ask("GET", "/v1/drivers").then(() => true), {
    what: "Ironic answers",
    within: 120_000,
    seen: () => readFile(join(directory, "ironic.log"), "utf8"),
  }).catch(async (error: unknown) => {
    await end(child);
    throw error;
  });
  return {
    port,
    ask,
    node,
    async addNode(name, details) {
      await ask("POST", "/v1/nodes", { name, ...details });
      for (const [verb, state] of [
        ["manage", "manageable"],
        ["provide", "available"],
      ] as const) {
        await ask("PUT", `/v1/nodes/${name}/states/provision`, { target: verb });
        await untilNode(name, state);
      }
    },
    target: (name) => ({
      address: "127.0.0.1",
      port,
      scheme: "http",
      username: httpBasic?.username ?? "none",
      password: httpBasic?.password ?? "none",
      trust: { mode: "off" },
      path: `/v1/nodes/${name}`,
    }),
    async stop() {
      await end(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL"); // its graceful stop takes a minute, and nothing of it is kept
  await ended;
}

const bcrypt = (password: string): string =>
  execFileSync(
    PYTHON,
    ["-c", "import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.read().encode(), bcrypt.gensalt(4)).decode())"],
    {
      input: password,
      encoding: "utf8",
    },
  ).trim();

async function freePorts(): Promise<readonly [number, number]> {
  const servers = [createServer(), createServer()];
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) => {
          server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            resolve(typeof address === "object" && address !== null ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  const [first = 0, second = 0] = ports;
  return [first, second];
}

interface Places {
  readonly directory: string;
  readonly port: number;
  readonly rpcPort: number;
  readonly users: string | undefined;
}

/** No message bus and no other services: what a single Ironic needs. Cleaning is off, since a test does not have the hour. */
const configuration = ({ directory, port, rpcPort, users }: Places): string => `[DEFAULT]
auth_strategy = ${users === undefined ? "noauth" : "http_basic"}
${users === undefined ? "" : `http_basic_auth_user_file = ${users}`}
host = localhost
my_ip = 127.0.0.1
rpc_transport = json-rpc
state_path = ${directory}
tempdir = ${directory}
enabled_hardware_types = fake-hardware,redfish
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = fake,redfish-virtual-media
enabled_console_interfaces = no-console
enabled_deploy_interfaces = fake,ramdisk
enabled_inspect_interfaces = no-inspect,fake
enabled_management_interfaces = fake,redfish
enabled_network_interfaces = noop
enabled_power_interfaces = fake,redfish
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor,fake,redfish
default_network_interface = noop
[api]
host_ip = 127.0.0.1
port = ${port}
[database]
connection = sqlite:///${directory}/ironic.db
[conductor]
automated_clean = false
workers_pool_size = 16
sync_power_state_interval = 1
[json_rpc]
auth_strategy = noauth
host_ip = 127.0.0.1
port = ${rpcPort}
[oslo_concurrency]
lock_path = ${directory}/locks
[deploy]
http_url = http://127.0.0.1:${port}
http_root = ${directory}/http
[redfish]
use_swift = false
[pxe]
tftp_root = ${directory}/tftp
`;
