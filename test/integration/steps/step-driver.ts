import type { Capability } from "../../../src/capabilities/provider.ts";
import type { MachineId } from "../../../src/kernel/ids.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { minutes, seconds } from "../../../src/kernel/time/duration.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import { HeardScript } from "../../../src/runs/model/heard-script.ts";
import { type ActingContext, type AnyStep, type ProbeReport, readProbe } from "../../../src/runs/model/step.ts";
import { type StepTargets, sshTargetOf } from "../../../src/runs/model/targets.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import type { MachineSite, SimulatedMachine } from "../../support/machine-site.ts";
import { startsNone } from "../../support/runs/step-bench.ts";
import { NOTHING_KNOWN } from "../../support/unknown-machine.ts";

/** One machine under work, as an executor would hold it; facts that steps prove are kept for the next one. */
export interface Bench {
  readonly site: MachineSite;
  readonly simulated: SimulatedMachine;
  machine: Machine;
  readonly log: string[];
}

export async function benchFor(site: MachineSite, id: string): Promise<Bench> {
  const simulated = site.machines.find(({ machine_id }) => machine_id === id);
  if (simulated === undefined) throw new Error(`there is no machine ${id}`);
  const { host_key } = (await site.truth(id)).os;
  const { address, port, jumpHosts } = site.ssh(simulated, null);
  const bmc = site.bmc(simulated);
  const machine = {
    id: id as MachineId,
    labels: {},
    spec: {
      provider: "datacenter",
      serial: simulated.serial,
      macs: simulated.mac_addresses,
      rack: null,
      slot: null,
      location: null,
      customerId: null,
      targetCluster: "default-cluster",
      ssh: { address, port, hostKey: host_key, jumpHosts },
      bmc: { address: bmc.address, port: bmc.port, protocol: "redfish", scheme: "https", trust: "pin" },
    },
    facts: NOTHING_KNOWN,
    conditions: [],
    activeRunId: null,
    residue: [],
    residueRecords: [],
    version: 1,
    basis: 1,
    state: { name: "PROVISIONING" },
    stateSince: new Date(),
    stateVersion: 1,
    outcome: null,
  } as unknown as Machine;
  return { site, simulated, machine, log: [] };
}

const withoutSeeds = (): never => {
  throw new Error("nothing is installed with a seed here");
};

function targetsOf({ site, simulated, machine }: Bench): StepTargets {
  return {
    bmc: async () => site.bmc(simulated),
    ssh: async () =>
      sshTargetOf(machine, {
        username: simulated.ssh_username,
        credentials: { privateKey: simulated.ssh_private_key },
      }),
    cluster: async (ref) =>
      found(
        site.clusters.find(({ name }) => name === (ref || machine.spec.targetCluster)),
        ref,
      ),
    image: async (ref) =>
      found(
        site.images.find((image) => image.ref === ref),
        ref,
      ),
    seedUrl: withoutSeeds,
    seededImage: withoutSeeds,
    script: async (ref) => site.runbooks.resolve(ref, "script_ref"),
  };
}

function found<T>(thing: T | undefined, ref: string): T {
  if (thing === undefined) throw new Error(`there is no ${ref}`);
  return thing;
}

/** A step that an executor has begun: what it does is up to the test. */
export interface BegunStep {
  readonly evidence: JsonObject;
  act(): Promise<unknown>;
  probe(): Promise<ProbeReport>;
  undo(): Promise<void>;
}

export async function begin(
  bench: Bench,
  kind: string,
  payload: JsonObject,
  options: {
    readonly without?: readonly Capability[];
    readonly signal?: AbortSignal;
    readonly params?: Record<string, string>;
    readonly installsNext?: string;
  } = {},
): Promise<BegunStep> {
  const step = found<AnyStep>(allSteps.get(kind), kind);
  const can = Object.fromEntries(
    Object.entries(bench.site.can).filter(([word]) => !options.without?.includes(word as Capability)),
  );
  const signal = options.signal ?? new AbortController().signal;
  const heard = new HeardScript(null); // as if everything that is said is written
  const context = () => ({
    payload: step.parse(payload, kind),
    runId: "run-1",
    target: bench.machine,
    children: [],
    startRun: startsNone,
    machine: bench.machine,
    targets: targetsOf(bench),
    can: can as unknown as ActingContext<JsonObject, JsonObject>["can"],
    call: { signal, subject: "test", mayTouchDevice: (wanted: number) => Math.min(wanted, minutes(1)) as never },
    log: (text: string | Uint8Array) =>
      void bench.log.push(typeof text === "string" ? text : Buffer.from(text).toString()),
    params: options.params ?? {},
    heard,
    isReplacedNext: false,
    installsNext: options.installsNext ?? null,
    installerSeen: null,
    clock: systemClock,
    receipt: null,
  });
  // As it comes back from the database.
  const evidence = JSON.parse(JSON.stringify(await step.before(context()))) as JsonObject;
  return {
    evidence,
    act: () => step.act({ ...context(), evidence }),
    probe: async () => readProbe(await step.probe({ ...context(), evidence })),
    undo: async () => void (await step.undo?.({ ...context(), evidence })),
  };
}

/** Looks until the step is done; fails after a while with what was seen last. */
export async function untilDone(bench: Bench, step: BegunStep, most: number = seconds(40)): Promise<ProbeReport> {
  const deadline = Date.now() + most;
  for (;;) {
    const seen = await step.probe();
    if (seen.state === "done") {
      bench.machine = { ...bench.machine, facts: { ...bench.machine.facts, ...seen.facts } as Machine["facts"] };
      return seen;
    }
    if (Date.now() > deadline)
      throw new Error(`not done after ${most} ms: ${JSON.stringify(seen)}\n${bench.log.join("")}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** before → act → probe until done, as an executor that is never disturbed. */
export async function carryOut(bench: Bench, kind: string, payload: JsonObject, params: Record<string, string> = {}) {
  const step = await begin(bench, kind, payload, { params });
  await step.act();
  return untilDone(bench, step);
}
