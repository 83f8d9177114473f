import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * A machine of QEMU behind a small BMC that speaks Redfish as unhelpful emulators do: it keeps `Once` as `Continuous`, tells neither when it was
 * reset nor how a boot goes, answers 400 to a lone `Disabled` and 500 to a boot source that is not there, has no sessions, gives its reason in
 * `error.message` with a general code, downloads media when they are inserted, and switches a while after the call. Its firmware reads the
 * override at every boot.
 */
export interface QemuMachine {
  /** `host:port` of the BMC, over plain HTTP. */
  readonly bmc: string;
  readonly username: string;
  readonly password: string;
  readonly ssh: string;
  readonly mac: string;
  /** The boot sources, one for each boot so far. */
  readonly boots: readonly string[];
  /** What it was told, in the order of the calls. */
  readonly commands: readonly string[];
  /** What is in its drives. */
  media(): (string | null)[];
  /** What the machine wrote to its console. */
  console(): string;
  stop(): Promise<void>;
}

export interface QemuOptions {
  readonly directory: string;
  readonly name: string;
  readonly mac: string;
  /** Where its SSH server is reached from here. */
  readonly sshPort: number;
  /** What its DHCP server names. */
  readonly bootFile: string;
  /** Of virtual drives for media. */
  readonly drives?: number;
}

/** As the machine sees the host that it runs on. */
export const HOST_SEEN_FROM_INSIDE = "10.0.2.2";
const SWITCHES_AFTER = 1_500;
const DISK_MIB = 64;

interface Drive {
  readonly id: string;
  image: string | null;
  file: string | null;
}

export async function startQemuMachine(options: QemuOptions): Promise<QemuMachine> {
  const { directory, name, mac, sshPort, bootFile } = options;
  const disk = join(directory, `${name}.disk`);
  writeFileSync(disk, "");
  truncateSync(disk, DISK_MIB * 1_048_576);
  const password = randomBytes(12).toString("hex");
  const drives: Drive[] = Array.from({ length: options.drives ?? 2 }, (_, at) => ({
    id: `Cd${at}`,
    image: null,
    file: null,
  }));
  const [boots, commands]: [string[], string[]] = [[], []];
  let override = "Hdd";
  let wanted: "on" | "off" = "off";
  let qemu: ChildProcess | undefined;
  let printed = "";
  let pending: NodeJS.Timeout | undefined;

  const boot = () => {
    boots.push(override);
    const first = (source: string, otherwise: number) => (override === source ? 1 : otherwise);
    const media = drives.flatMap(({ id, file }, at) =>
      file === null
        ? []
        : [
            ...["-drive", `if=none,id=${id},media=cdrom,format=raw,readonly=on,file=${file}`],
            ...["-device", `scsi-cd,drive=${id}${at === 0 ? `,bootindex=${first("Cd", 4)}` : ""}`],
          ],
    );
    const network = `user,id=net,hostfwd=tcp:127.0.0.1:${sshPort}-:22,bootfile=${bootFile}`;
    qemu = spawn(
      "qemu-system-x86_64",
      [
        ...["-machine", "q35,accel=tcg", "-cpu", "max", "-m", "384", "-display", "none", "-monitor", "none"],
        ...["-serial", "stdio", "-no-reboot", "-netdev", network],
        ...["-device", `virtio-net-pci,netdev=net,mac=${mac},bootindex=${first("Pxe", 3)}`],
        ...["-drive", `if=none,id=disk,format=raw,file=${disk}`],
        ...["-device", `virtio-blk-pci,drive=disk,bootindex=${first("Hdd", 2)}`],
        ...["-device", "virtio-scsi-pci", ...media],
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    for (const stream of [qemu.stdout, qemu.stderr]) stream?.on("data", (text) => (printed += String(text)));
    const started = qemu;
    // It ends when the system restarts the machine: the firmware begins again, with what is set by then.
    started.on("exit", () => {
      if (qemu !== started) return;
      qemu = undefined;
      if (wanted === "on") boot();
    });
  };
  const off = async () => {
    const running = qemu;
    qemu = undefined;
    if (running === undefined || running.exitCode !== null) return;
    running.kill("SIGKILL");
    await once(running, "exit");
  };
  const reset = (type: string) => {
    commands.push(`reset ${type}`);
    wanted = type.endsWith("Off") || type === "GracefulShutdown" ? "off" : "on";
    clearTimeout(pending);
    pending = setTimeout(async () => {
      if (type !== "On") await off();
      if (wanted === "on" && qemu === undefined) boot();
    }, SWITCHES_AFTER);
  };
  const setBoot = (asked: Readonly<Record<string, string>>): Reply => {
    const { BootSourceOverrideTarget: target } = asked;
    commands.push(`boot ${JSON.stringify(asked)}`);
    if (target === undefined) return refuse(400, "Missing the BootSourceOverrideTarget element");
    if (!["Pxe", "Hdd", "Cd"].includes(target)) return refuse(500, `Unknown boot source ${target}`);
    if (target === "Cd" && drives[0]?.file === null) return refuse(500, "Target Cd does not have a matching device");
    override = target;
    return { status: 204 };
  };
  const insert = async (drive: Drive, at: number, url: string): Promise<Reply> => {
    commands.push(`insert ${drive.id}`);
    const file = join(directory, `${name}-${drive.id}.iso`);
    try {
      // The BMC is on the other side of the machine's network.
      const answer = await fetch(url.replace(HOST_SEEN_FROM_INSIDE, "127.0.0.1"));
      if (!answer.ok || answer.body === null) return refuse(500, `Failed to download ${url}: ${answer.status}`);
      await pipeline(Readable.fromWeb(answer.body as never), createWriteStream(file));
    } catch (error) {
      return refuse(500, `Failed to download ${url}: ${String(error)}`);
    }
    drives[at] = { ...drive, image: url, file };
    return { status: 204 };
  };
  const eject = (drive: Drive, at: number): Reply => {
    commands.push(`eject ${drive.id}`);
    drives[at] = { ...drive, image: null, file: null };
    return { status: 204 };
  };

  const answer = async (method: string, path: string, body: Body): Promise<Reply> => {
    const tree = resources({ name, mac, drives, power: qemu === undefined ? "Off" : "On", override });
    if (method === "GET")
      return tree[path] === undefined ? refuse(404, `no ${path}`) : { status: 200, body: tree[path] };
    if (method === "PATCH" && path === SYSTEM) return setBoot((body.Boot ?? {}) as Record<string, string>);
    if (method === "POST" && path === `${SYSTEM}/Actions/ComputerSystem.Reset`) {
      reset(String(body.ResetType));
      return { status: 204 };
    }
    for (const [at, drive] of drives.entries()) {
      if (path === actionOf(drive, "InsertMedia")) return insert(drive, at, String(body.Image));
      if (path === actionOf(drive, "EjectMedia")) return eject(drive, at);
    }
    return refuse(405, `${method} ${path} is not supported`);
  };
  const credentials = `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`;
  const server = createServer((request, response) => void serve(request, response, credentials, answer));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    bmc: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    username: "admin",
    password,
    ssh: `127.0.0.1:${sshPort}`,
    mac,
    boots,
    commands,
    media: () => drives.map(({ image }) => image),
    console: () => printed,
    async stop() {
      clearTimeout(pending);
      wanted = "off";
      await off();
      server.closeAllConnections();
      server.close();
      rmSync(disk, { force: true });
    },
  };
}

type Body = Readonly<Record<string, unknown>>;
interface Reply {
  readonly status: number;
  readonly body?: unknown;
}

const refuse = (status: number, message: string): Reply => ({
  status,
  body: { error: { code: "Base.1.0.GeneralError", message } },
});

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  credentials: string,
  answer: (method: string, path: string, body: Body) => Promise<Reply>,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const path = (request.url ?? "").replace(/\/$/, "");
  const isKnown = request.headers.authorization === credentials || path === ROOT;
  const text = Buffer.concat(chunks).toString();
  const reply = isKnown
    ? await answer(request.method ?? "", path, text === "" ? {} : (JSON.parse(text) as Body))
    : refuse(401, "Unauthorized");
  response.writeHead(reply.status, { "content-type": "application/json" });
  response.end(reply.body === undefined ? "" : JSON.stringify(reply.body));
}

const ROOT = "/redfish/v1";
const SYSTEM = `${ROOT}/Systems/1`;
const MANAGER = `${ROOT}/Managers/1`;
const MEDIA = `${MANAGER}/VirtualMedia`;
const link = (path: string) => ({ "@odata.id": path });
const actionOf = ({ id }: Drive, action: string): string => `${MEDIA}/${id}/Actions/VirtualMedia.${action}`;

interface Shown {
  readonly name: string;
  readonly mac: string;
  readonly drives: readonly Drive[];
  readonly power: string;
  readonly override: string;
}

function resources({ name, mac, drives, power, override }: Shown): Readonly<Record<string, unknown>> {
  const port = `${SYSTEM}/EthernetInterfaces/1`;
  return {
    [ROOT]: {
      "@odata.id": ROOT,
      Id: "RootService",
      Systems: link(`${ROOT}/Systems`),
      Managers: link(`${ROOT}/Managers`),
    },
    [`${ROOT}/Systems`]: { Members: [link(SYSTEM)] },
    [SYSTEM]: {
      ...{ "@odata.id": SYSTEM, Id: "1", Name: name, SerialNumber: `serial-of-${name}`, PowerState: power },
      ...{ Status: { State: "Enabled", Health: "OK" }, Links: { ManagedBy: [link(MANAGER)] } },
      Boot: { BootSourceOverrideEnabled: "Continuous", BootSourceOverrideTarget: override },
      EthernetInterfaces: link(`${SYSTEM}/EthernetInterfaces`),
      Actions: {
        "#ComputerSystem.Reset": {
          target: `${SYSTEM}/Actions/ComputerSystem.Reset`,
          "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart", "GracefulShutdown"],
        },
      },
    },
    [`${SYSTEM}/EthernetInterfaces`]: { Members: [link(port)] },
    [port]: { "@odata.id": port, Id: "1", MACAddress: mac },
    [`${ROOT}/Managers`]: { Members: [link(MANAGER)] },
    [MANAGER]: { "@odata.id": MANAGER, Id: "1", VirtualMedia: link(MEDIA) },
    [MEDIA]: { Members: drives.map(({ id }) => link(`${MEDIA}/${id}`)) },
    ...Object.fromEntries(
      drives.map((drive) => [
        `${MEDIA}/${drive.id}`,
        {
          ...{ "@odata.id": `${MEDIA}/${drive.id}`, Id: drive.id, MediaTypes: ["CD", "DVD"] },
          ...{ Image: drive.image ?? "", Inserted: drive.image !== null },
          Actions: {
            "#VirtualMedia.InsertMedia": { target: actionOf(drive, "InsertMedia") },
            "#VirtualMedia.EjectMedia": { target: actionOf(drive, "EjectMedia") },
          },
        },
      ]),
    ),
  };
}
