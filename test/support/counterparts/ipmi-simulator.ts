import { type ChildProcess, spawn } from "node:child_process";
import { createSocket, type RemoteInfo } from "node:dgram";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { eventually } from "../eventually.ts";
import { fruBytes } from "./fru-bytes.ts";

const isInstalled = (program: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));

/** What is missing to run these tests; empty where nothing is. */
export const ipmiMissing: string = [
  ["ipmi_sim", "openipmi"],
  ["ipmitool", "ipmitool"],
]
  .flatMap(([program = "", name = ""]) => (isInstalled(program) ? [] : [name]))
  .join(" and ");

/**
 * One BMC of OpenIPMI's simulator, on loopback, with a chassis of a few files behind it: what the BMC does to the chassis is seen
 * there, and not through the BMC.
 */
export interface IpmiSimulator {
  readonly target: BmcTarget;
  readonly serial: string;
  readonly systemUuid: string;
  /** All that the BMC told the chassis, in order: `power 0`, `power 1`, `reset 1`, `shutdown 1`, `boot pxe`, `identify 0 1`. */
  told(): Promise<readonly string[]>;
  power(): Promise<"on" | "off">;
  switchAtRack(power: "on" | "off"): Promise<void>;
  /** What the machine will boot from, in the simulator's words. */
  boot(): Promise<string>;
  /** Datagrams that have reached the BMC. */
  readonly requests: number;
  /** Nothing that is sent to it arrives any more. */
  silent: boolean;
  /** What its one sensor measures, in degrees: critical from 70 on, not to be recovered from from 80 on. */
  setTemperature(degrees: number): Promise<void>;
  /** Whether the operating system goes down when it is asked to; it does until told otherwise. */
  setObeysShutdown(obeys: boolean): Promise<void>;
  stop(): Promise<void>;
}

export interface IpmiSimulatorOptions {
  readonly serial?: string;
  /** A program that is told what the chassis is told (`power 0`, …), and ends once that is done. */
  readonly chassis?: readonly string[];
}

const UUID = "4c4c4544-0042-4a10-8053-b3c04f4e3132";
/** The same as SMBIOS has it: the first three fields with the least significant byte first. */
const GUID = "44454c4c4200104a8053b3c04f4e3132";
const USERNAME = "admin";
const PASSWORD = "test-&-password";

export async function startIpmiSimulator(options: IpmiSimulatorOptions = {}): Promise<IpmiSimulator> {
  const { serial = "SN-IPMI-1" } = options;
  const directory = await mkdtemp(join(tmpdir(), "millwright-ipmi-"));
  const at = (name: string) => join(directory, name);
  const read = async (name: string) => (await readFile(at(name), "utf8")).trim();
  const port = await freeUdpPort();
  const console = await freeTcpPort();
  await mkdir(at("state"));
  await writeFile(at("power"), "1\n");
  await writeFile(at("boot"), "none\n");
  await writeFile(at("told"), "");
  await writeFile(at("chassis"), chassisScript(directory, options), { mode: 0o755 });
  await writeFile(at("lan.conf"), lanSettings(port, console, at("chassis")));
  await writeFile(at("bmc.emu"), bmcCommands(serial));
  const child = spawn("ipmi_sim", ["-c", at("lan.conf"), "-f", at("bmc.emu"), "-s", at("state"), "-n"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const relay = await startRelay(port);
  await untilAnswering(relay.port, child);
  const before = relay.passed;

  return {
    target: {
      address: "127.0.0.1",
      port: relay.port,
      scheme: "https",
      username: USERNAME,
      password: PASSWORD,
      trust: { mode: "off" },
    },
    serial,
    systemUuid: UUID,
    told: async () => (await read("told")).split("\n").filter((line) => line !== ""),
    power: async () => ((await read("power")) === "1" ? "on" : "off"),
    switchAtRack: (power) => writeFile(at("power"), power === "on" ? "1\n" : "0\n"),
    setObeysShutdown: (obeys) => writeFile(at("deaf"), obeys ? "" : "deaf"),
    setTemperature: (degrees) => command(console, `sensor_set_value 0x20 0 1 ${degrees} 0`),
    boot: () => read("boot"),
    get requests() {
      return relay.passed - before;
    },
    get silent() {
      return relay.silent;
    },
    set silent(silent) {
      relay.silent = silent;
    },
    async stop() {
      relay.close();
      await end(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Called by the simulator as `<script> get power` or `<script> set power 1`, with several such pairs at once. */
const chassisScript = (directory: string, { chassis }: IpmiSimulatorOptions): string => `#!/bin/sh
cd ${quoted(directory)} || exit 1
operation=$1; shift
case $operation in
  get) for name; do echo "$name:$(cat "$name")"; done ;;
  set)
    while [ $# -gt 0 ]; do
      echo "$1 $2" >> told
      case $1 in
        power|boot) echo "$2" > "$1" ;;
        shutdown) if [ -s deaf ]; then shift 2; continue; fi; echo 0 > power ;;
      esac
      ${chassis === undefined ? ":" : `${chassis.map(quoted).join(" ")} "$1" "$2"`}
      shift 2
    done ;;
esac
`;

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const lanSettings = (port: number, console: number, chassis: string): string => `name "bmc"
set_working_mc 0x20
startlan 1
  addr 127.0.0.1 ${port}
  priv_limit admin
  allowed_auths_callback md5
  allowed_auths_user md5
  allowed_auths_operator md5
  allowed_auths_admin md5
  guid ${GUID}
endlan
console 127.0.0.1 ${console}
chassis_control "${chassis}"
user 2 true "${USERNAME}" "${PASSWORD}" operator 10 md5
`;

const hex = (bytes: readonly number[]): string => bytes.map((byte) => `0x${byte.toString(16)}`).join(" ");

/** A BMC with firmware 9.08, an inventory, a log with one event and one sensor: the air at 25 degrees, with upper thresholds. */
function bmcCommands(serial: string): string {
  const fru = fruBytes({ serial, vendor: "Generic", model: "Server 1" });
  return `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 100 0x0a
sensor_add 0x20 0 1 1 1
sensor_set_threshold 0x20 0 1 settable 111000 80 70 60 00 00 00
sensor_set_value 0x20 0 1 25 0
sensor_set_event_support 0x20 0 1 enable scanning per-state 000000000000000 000000000000000 000000000000000 000000000000000
main_sdr_add 0x20 ${hex(AIR_SENSOR)}
mc_add_fru_data 0x20 0 ${fru.length} data ${hex(fru)}
mc_enable 0x20
sel_add 0x20 2 0x00 0xf1 0x53 0x65 0x20 0 4 1 1 1 0x59 0 0
`;
}

/** Record 1 of type 1 (full sensor): sensor 1, temperature, degrees C, linear, with readable upper thresholds. */
const AIR_SENSOR = (() => {
  const name = [...Buffer.from("Air", "latin1")];
  const body = [
    ...[0x20, 0, 1, 7, 1, 0x7f, 0x68, 1, 1, 0, 0, 0, 0, 0x38, 0x38, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ...[25, 40, 10, 255, 0, 80, 70, 60, 0, 0, 0, 2, 2, 0, 0, 0, 0xc0 | name.length, ...name],
  ];
  return [0, 0, 0x51, 1, body.length, ...body];
})();

interface Relay {
  readonly port: number;
  passed: number;
  silent: boolean;
  close(): void;
}

/** Stands before the BMC: counts what reaches it, and can keep it from being reached. */
async function startRelay(bmcPort: number): Promise<Relay> {
  const front = createSocket("udp4");
  const ways = new Map<string, ReturnType<typeof createSocket>>();
  const wayOf = ({ address, port }: RemoteInfo) => {
    const known = ways.get(`${address}:${port}`);
    if (known !== undefined) return known;
    const way = createSocket("udp4");
    way.on("message", (answer) => front.send(answer, port, address));
    way.on("error", () => undefined);
    ways.set(`${address}:${port}`, way);
    return way;
  };
  const relay: Relay = {
    port: 0,
    passed: 0,
    silent: false,
    close() {
      front.close();
      for (const way of ways.values()) way.close();
    },
  };
  front.on("message", (message, from) => {
    if (relay.silent) return;
    relay.passed += 1;
    wayOf(from).send(message, bmcPort, "127.0.0.1");
  });
  await new Promise<void>((resolve) => front.bind(0, "127.0.0.1", resolve));
  return Object.assign(relay, { port: front.address().port });
}

/** Asked as IPMI's own "ping": Get Channel Authentication Capabilities, outside of any session. */
const PRESENCE = Buffer.from([
  6, 0, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x20, 0x18, 0xc8, 0x81, 0, 0x38, 0x8e, 4, 0xb5,
]);

async function untilAnswering(port: number, child: ChildProcess): Promise<void> {
  const socket = createSocket("udp4");
  let answered = false;
  socket.on("message", () => {
    answered = true;
  });
  try {
    await eventually(
      async () => {
        socket.send(PRESENCE, port, "127.0.0.1");
        return answered || child.exitCode !== null;
      },
      { what: "ipmi_sim answers" },
    );
    if (child.exitCode !== null) throw new Error(`ipmi_sim ended with exit code ${child.exitCode}; see what it wrote`);
  } finally {
    socket.close();
  }
}

async function freeUdpPort(): Promise<number> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(() => resolve()));
  return port;
}

async function freeTcpPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** One line to the simulator's console; it has been carried out when the prompt is back. */
async function command(port: number, line: string): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  let said = "";
  socket.on("data", (chunk) => {
    said += chunk.toString("latin1");
  });
  try {
    await eventually(async () => said.includes("> "), { what: "the console of ipmi_sim answers" });
    said = "";
    socket.write(`${line}\r\n`);
    await eventually(async () => /\n\s*> /.test(said), {
      what: `ipmi_sim has carried out ${line}`,
      seen: async () => said,
    });
  } finally {
    socket.destroy();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  await ended;
}
