import { DeviceFailure } from "../src/capabilities/device-failure.ts";
import type { Capabilities, Capability } from "../src/capabilities/provider.ts";
import type { RemoteExit, RemoteScript } from "../src/capabilities/remote-exec.ts";
import { type Duration, milliseconds } from "../src/kernel/time/duration.ts";
import type { MachineHardware } from "../src/wiring/machine-hardware.ts";

/** How a machine is right now. Plain JSON, so that it can be kept where a killed server does not take it along. */
export type MachineState = {
  /** Counts its boots. */
  readonly boot: number;
  /** Milliseconds since 1970 from which on its system answers. */
  readonly upAt: number;
  readonly override: "pxe" | "http" | "disk" | "cd" | "none";
  /** Of the medium that is in, and of the installation that the disk holds. */
  readonly medium: string | null;
  readonly installed: string | null;
  readonly joined: boolean;
  /** Scripts that were started. */
  readonly marks: readonly string[];
};

export const FACTORY_NEW: MachineState = {
  boot: 1,
  upAt: 0,
  override: "none",
  medium: null,
  installed: null,
  joined: false,
  marks: [],
};

/** What reaches a machine from outside and cannot be taken back: counted, since none may be lost or doubled. */
export type MachineEffect = "reset" | "install" | "script" | "join";

/** Where machines keep how they are. */
export interface MachineMemory {
  read(id: string): Promise<MachineState>;
  /** Counts the effect and changes the state in one. */
  change(id: string, effect: MachineEffect | null, patch: Partial<MachineState>): Promise<void>;
}

/** In this process: as fast as it gets. */
export function createMemory(): MachineMemory & { count(effect: MachineEffect): number } {
  const states = new Map<string, MachineState>();
  const counts = new Map<MachineEffect, number>();
  return {
    read: async (id) => states.get(id) ?? FACTORY_NEW,
    async change(id, effect, patch) {
      states.set(id, { ...(states.get(id) ?? FACTORY_NEW), ...patch });
      if (effect !== null) counts.set(effect, (counts.get(effect) ?? 0) + 1);
    },
    count: (effect) => counts.get(effect) ?? 0,
  };
}

export interface InstantMachinesOptions {
  readonly memory: MachineMemory;
  /** How long a boot lasts; at once unless told. */
  readonly bootTakes?: Duration;
  /** What each script writes. */
  readonly scriptOutput?: string;
}

export const IMAGE_DIGEST = `sha256:${"0".repeat(64)}`;
const ON_TIME = milliseconds(1_000);
/** About as much as a connection delivers at once. */
export const CHUNK_BYTES = 4_096;
const STAMP_FILE = "/etc/millwright-image";

/** Each machine has an address of its own, by which BMC and system are reached, and from which its number can be read back. */
export const addressOfMachine = (n: number): string => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
export function machineAt(address: string): string {
  const [, high = 0, middle = 0, low = 0] = address.split(".").map(Number);
  return `m-${(high << 16) + (middle << 8) + low}`;
}

interface Call {
  mayTouchDevice(wanted: Duration): Duration;
}

/** Machines that answer at once and obey at once, as the steps of the built-in plans ask them; their evidence and proofs are real. */
export function createInstantMachines(options: InstantMachinesOptions): MachineHardware {
  const can: Partial<Capabilities> = { ...bmcOf(options), exec: systemOf(options), cluster: clusterOf(options) };
  return {
    providers: ["datacenter"],
    providerOf: ({ provider }) => ({ name: provider, can }),
    takesSeeds: () => true,
    capabilitiesOf: () => new Set(Object.keys(can) as Capability[]),
    async close() {},
  };
}

type Bmc = Pick<Capabilities, "boot" | "reset" | "system" | "imaging">;

function bmcOf({ memory, bootTakes = milliseconds(0) }: InstantMachinesOptions): Bmc {
  const look = (target: { readonly address: string }, call: Call) => {
    call.mayTouchDevice(ON_TIME);
    return memory.read(machineAt(target.address));
  };
  const change = (
    target: { readonly address: string },
    call: Call,
    effect: MachineEffect | null,
    patch: Partial<MachineState>,
  ) => {
    call.mayTouchDevice(ON_TIME);
    return memory.change(machineAt(target.address), effect, patch);
  };
  const booted = ({ boot }: MachineState) => ({
    boot: boot + 1,
    override: "none" as const,
    upAt: Date.now() + bootTakes,
  });
  return {
    boot: {
      readBootOverride: async (target, call) => ({ source: (await look(target, call)).override, lasts: "once" }),
      setBootOverride: (target, source, call) => change(target, call, null, { override: source }),
      clearBootOverride: (target, call) => change(target, call, null, { override: "none" }),
    },
    reset: {
      async resetPower(target, _mode, call) {
        await change(target, call, "reset", booted(await look(target, call)));
      },
    },
    system: {
      async identify(target, call) {
        call.mayTouchDevice(ON_TIME);
        const id = machineAt(target.address);
        return {
          serial: `SN-${id}`,
          vendor: "Instant",
          model: "Machine 9",
          systemUuid: `uuid-${id}`,
          macs: [],
          bmcMac: null,
        };
      },
      async readBoot(target, call) {
        const { boot, upAt } = await look(target, call);
        return { lastReset: `reset ${boot}`, progress: upAt > Date.now() ? "booting" : "running" };
      },
      readFirmware: async () => [],
    },
    imaging: {
      prepare: (target, { token }, call) => change(target, call, null, { medium: token, override: "cd" }),
      async start(target, { token }, call) {
        const now = await look(target, call);
        await change(target, call, "install", { ...booted(now), installed: token, joined: false });
      },
      async readProgress(target, { token }, call) {
        const { medium, override } = await look(target, call);
        return { inserted: medium === token, armed: override === "cd" };
      },
      async cleanUp(target, _order, call) {
        await change(target, call, null, { medium: null, override: "none" });
        return undefined;
      },
    },
  };
}

function systemOf({ memory, scriptOutput = "" }: InstantMachinesOptions): Capabilities["exec"] {
  const output = Buffer.from(scriptOutput);
  const reach = async ({ address }: { readonly address: string }, call: Call) => {
    call.mayTouchDevice(ON_TIME);
    const id = machineAt(address);
    const state = await memory.read(id);
    if (state.upAt > Date.now()) throw new DeviceFailure("unreachable", "ssh", "the system is on its way up");
    return { id, state };
  };
  const exited = (text: string): RemoteExit => ({ code: 0, signal: null, output: text });
  return {
    async run(target, { env, onOutput }: RemoteScript, call) {
      const { id, state } = await reach(target, call);
      const { MILLWRIGHT_MARK: mark = "", MILLWRIGHT_STREAM: stream, MILLWRIGHT_FROM: from } = env;
      const isStarted = state.marks.includes(mark);
      if (env.MILLWRIGHT_SCRIPT !== undefined) {
        const joins = env.JOIN_ENDPOINT !== undefined;
        if (!isStarted)
          await memory.change(id, joins ? "join" : "script", {
            marks: [...state.marks, mark],
            ...(joins && { joined: true }),
          });
        return exited("");
      }
      if (stream !== undefined) {
        if (stream !== "stdout") return exited("");
        for (let at = Number(from); at < output.length; at += CHUNK_BYTES)
          onOutput?.(output.subarray(at, at + CHUNK_BYTES), "stdout");
        return exited("");
      }
      return exited(isStarted ? "ended 0\n" : "absent\n");
    },
    async readFile(target, path, call) {
      const { id, state } = await reach(target, call);
      const hostKey = `ssh-ed25519 ${state.installed ?? "factory"}`;
      if (path !== STAMP_FILE) return { text: path.endsWith("boot_id") ? `boot ${state.boot}` : `uuid-${id}`, hostKey };
      const stamp = `digest=${IMAGE_DIGEST}\nmachine=${id}\ntoken=${state.installed}\n`;
      return { text: state.installed === null ? undefined : stamp, hostKey };
    },
    readHostKey: async () => "ssh-ed25519 factory",
  };
}

function clusterOf({ memory }: InstantMachinesOptions): Capabilities["cluster"] {
  return {
    mintJoin: async (_target, { lifetime }) => ({
      endpoint: "10.0.0.1:6443",
      token: "abcdef.0123456789abcdef",
      caCertHash: `sha256:${"0".repeat(64)}`,
      expiresAt: new Date(Date.now() + lifetime),
    }),
    async findNode(_target, { systemUuid }, call) {
      call.mayTouchDevice(ON_TIME);
      const id = systemUuid?.replace("uuid-", "") ?? "";
      const { joined, boot } = await memory.read(id);
      if (!joined) return undefined;
      return {
        name: id,
        uid: id,
        ready: true,
        reason: "",
        unschedulable: false,
        systemUuid,
        bootId: `boot ${boot}`,
        kubeletVersion: "v1.33.0",
        matchedBy: "system_uuid",
      };
    },
    async setSchedulable() {},
    drain: async () => ({ remaining: [], refused: [] }),
    async revokeJoin() {},
  };
}
