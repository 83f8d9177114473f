import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { DeviceFailure } from "../../../src/capabilities/device-failure.ts";
import type { Capabilities } from "../../../src/capabilities/provider.ts";
import type { RemoteExec, RemoteExit } from "../../../src/capabilities/remote-exec.ts";
import type { SshTarget } from "../../../src/capabilities/ssh-target.ts";
import type { Effect } from "../../../src/kernel/effects.ts";
import type { MachineId } from "../../../src/kernel/ids.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import type { Duration } from "../../../src/kernel/time/duration.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import { type Heard, HeardScript } from "../../../src/runs/model/heard-script.ts";
import { type AnyStep, type ProbeReport, readProbe, type Undone } from "../../../src/runs/model/step.ts";
import type { SeededImageOrder, StepTargets } from "../../../src/runs/model/targets.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";

/** For tests of steps: a machine made of plain values, and capabilities that a test writes down. */
export const unreachable = (): never => {
  throw new DeviceFailure("unreachable", "bmc", "nobody answers");
};

export const aBmc: BmcTarget = {
  address: "10.0.0.1",
  port: 443,
  scheme: "https",
  username: "root",
  password: "secret",
  trust: { mode: "off" },
};
export const anSsh: SshTarget = {
  address: "10.0.0.2",
  port: 22,
  username: "root",
  credentials: { privateKey: "key" },
  hostKey: "ssh-ed25519 AAAA",
  jumpHosts: [],
};
export const anImage = { ref: "ubuntu", digest: "sha256:1234", location: "http://images/ubuntu.iso" };

export function aMachine(spec: Partial<Machine["spec"]> = {}): Machine {
  return {
    id: "m-1" as MachineId,
    spec: {
      serial: "S1",
      macs: ["02:00:00:00:00:01"],
      targetCluster: "c1",
      ssh: { address: "10.0.0.2", port: 22, hostKey: null, jumpHosts: [] },
      bmc: { address: "10.0.0.1", port: null, protocol: null, scheme: "https", trust: "off" },
      ...spec,
    },
    facts: { serial: null, sshHostKey: null, certificateFingerprint: null },
  } as unknown as Machine;
}

export type Fakes = { readonly [C in keyof Capabilities]?: Partial<Capabilities[C]> };

export interface StepBench {
  readonly log: string[];
  before(): Promise<JsonObject>;
  announces(evidence: JsonObject): Promise<readonly Effect[] | undefined>;
  act(evidence: JsonObject): Promise<unknown>;
  probe(evidence: JsonObject): Promise<ProbeReport>;
  carryOn(evidence: JsonObject): Promise<unknown>;
  undo(evidence: JsonObject, signal?: AbortSignal): Promise<Undone | undefined>;
}

export function benchOf(
  kind: string,
  payload: JsonObject,
  can: Fakes,
  around: {
    readonly machine?: Machine;
    readonly targets?: Partial<StepTargets>;
    readonly scripts?: Record<string, string>;
    /** Whether what a pass says comes to be written; absent: always. */
    readonly isWritten?: () => boolean;
    readonly isReplacedNext?: boolean;
    readonly installsNext?: string;
    readonly installerSeen?: string;
    readonly mediumRefused?: { readonly order: string; readonly why: string };
    readonly hasNotBegun?: boolean;
    readonly actingAt?: Date;
    readonly receipt?: JsonObject;
    readonly now?: Date;
    readonly params?: Readonly<Record<string, string>>;
  } = {},
): StepBench {
  const step = allSteps.get(kind) as AnyStep;
  const log: string[] = [];
  const runbooks = new Runbooks(around.scripts ?? {});
  let onRecord: Heard | null = null;
  const context = {
    payload: step.parse(payload, kind),
    runId: "run-1",
    target: around.machine ?? aMachine(),
    children: [],
    startRun: startsNone,
    machine: around.machine ?? aMachine(),
    targets: {
      bmc: async () => aBmc,
      ssh: async () => anSsh,
      cluster: async () => ({ name: "c1", apiUrl: "https://c1", ca: null, credentials: { token: "t" } }),
      image: async () => anImage,
      seedUrl: (runId: string, token: string) => `http://server/seeds/${runId}/${token}/seed.iso`,
      seededImage: async ({ runId, token }: SeededImageOrder) => ({
        url: `http://server/seeds/${runId}/${token}/install.iso`,
        iso: { bytes: 1, version: "1", digest: "d" },
        signIn: null,
      }),
      script: async (ref: string) => runbooks.resolve(ref, "script_ref"),
      ...around.targets,
    },
    can: can as Parameters<AnyStep["before"]>[0]["can"],
    call: {
      signal: new AbortController().signal,
      subject: "test",
      mayTouchDevice: (wanted: Duration) => wanted,
    },
    log: (text: string | Uint8Array) => void log.push(Buffer.from(text).toString("utf8")),
    params: around.params ?? {},
    isReplacedNext: around.isReplacedNext ?? false,
    installsNext: around.installsNext ?? null,
    installerSeen: around.installerSeen ?? null,
    mediumRefused: around.mediumRefused ?? null,
    receipt: around.receipt ?? null,
    clock: { now: () => around.now ?? new Date(0) },
    hasNotBegun: around.hasNotBegun ?? false,
    actingAt: around.actingAt ?? null,
  };
  type Looking = typeof context & { readonly heard: HeardScript };
  /** One pass, and how far it has heard, if it is written. */
  async function looking<T>(look: (context: Looking) => Promise<T>): Promise<T> {
    const heard = new HeardScript(onRecord);
    try {
      return await look({ ...context, heard });
    } finally {
      if (around.isWritten?.() ?? true) onRecord = heard.soFar;
    }
  }
  return {
    log,
    before: () => looking((look) => step.before(look)),
    announces: (evidence) => looking(async (look) => step.announces?.({ ...look, evidence })),
    act: (evidence) => looking((look) => step.act({ ...look, evidence })),
    probe: (evidence) => looking(async (look) => readProbe(await step.probe({ ...look, evidence }))),
    carryOn: (evidence) => looking(async (look) => step.carryOn?.({ ...look, evidence })),
    undo: (evidence, signal = context.call.signal) =>
      looking(async (look) => step.undo?.({ ...look, call: { ...look.call, signal }, evidence })),
  };
}

/** An operating system made of files; undefined as a whole while nobody answers. */
export function fakeSystem(files: () => Readonly<Record<string, string>> | undefined): Partial<RemoteExec> {
  return {
    async readFile(_target, path) {
      const now = files();
      return now === undefined ? unreachable() : { text: now[path], hostKey: "ssh-ed25519 NEW" };
    },
  };
}

/** Steps on machines start no other runs. */
export const startsNone = (): never => {
  throw new Error("no other run is to be started");
};

export const exited = (code: number, output = ""): RemoteExit => ({ code, signal: null, output });
