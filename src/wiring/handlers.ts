import type { BmcTarget, TlsTrust } from "../capabilities/bmc-target.ts";
import type { ClusterTarget } from "../capabilities/cluster-target.ts";
import type { Provider } from "../capabilities/provider.ts";
import type { HandlerOf, StateHandler } from "../engine/look.ts";
import { createBatcher } from "../kernel/batcher.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Thing } from "../kernel/lifecycle.ts";
import type { Outcome } from "../kernel/outcome.ts";
import { type Clock, systemClock } from "../kernel/time/clock.ts";
import { type Duration, hours } from "../kernel/time/duration.ts";
import type { ExpectedPowerShelf } from "../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import { type ExplorerContext, expectedPowerShelfHandlers } from "../lifecycles/expected-power-shelf/handlers.ts";
import { installHandlers } from "../lifecycles/install/handlers.ts";
import { type MachineContext, machineHandlers } from "../lifecycles/machine/handlers.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { type PowerShelfContext, powerShelfHandlers } from "../lifecycles/power-shelf/handlers.ts";
import type { PowerShelf } from "../lifecycles/power-shelf/power-shelf.ts";
import { BegunActions } from "../runs/executor/begun-actions.ts";
import { type RunContext, runHandlers } from "../runs/executor/executor.ts";
import type { RunThing } from "../runs/model/lifecycle.ts";
import type { AnyStep } from "../runs/model/step.ts";
import type { StepTargets } from "../runs/model/targets.ts";
import type { Runbooks } from "../runs/steps/scripts/runbooks.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import { type BmcCredentials, getBmcCredentials } from "../store/device/bmc-credentials.ts";
import { loadInstalls } from "../store/install/installs.ts";
import type { Database } from "../store/postgres/database.ts";
import { isDatabaseTrouble } from "../store/postgres/database-errors.ts";
import { withFakeEndpoints } from "./fake-machines.ts";
import type { MachineHardware } from "./machine-hardware.ts";
import { wireStepTargets } from "./step-targets.ts";

export interface HandlerWiring {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly provider: Provider;
  readonly monitorEvery: Duration;
  readonly exploreEvery: Duration;
  /** Absent: an attempt at a network install may take an hour. */
  readonly installTimeout?: Duration;
  readonly clock?: Clock;
  /** Absent where no machines are worked on. */
  readonly runs?: RunWiring;
}

export interface RunWiring {
  readonly hardware: MachineHardware;
  readonly steps: ReadonlyMap<string, AnyStep>;
  readonly runbooks: Runbooks;
  /** Names this process. */
  readonly instance: string;
}

/** The handlers of every lifecycle, with what they need of the world around them. */
export function wireHandlers({
  db,
  secrets,
  provider,
  monitorEvery,
  exploreEvery,
  installTimeout = hours(1),
  clock = systemClock,
  runs,
}: HandlerWiring): ReadonlyMap<string, HandlerOf> {
  const credentials = createBatcher<string, BmcCredentials | AppError>({
    most: 500,
    atOnce: 2,
    run: (macs) => getBmcCredentials(db, secrets, macs),
  });
  const signIn = async (bmc: Omit<BmcTarget, "username" | "password">, mac: string): Promise<BmcTarget> => {
    const found = await credentials.submit(mac);
    if (found instanceof AppError) throw new StepFailure("fail", found.message);
    return { ...bmc, ...found };
  };

  const shelfContext = (shelf: PowerShelf): Omit<PowerShelfContext, "call"> => ({
    provider,
    clock,
    monitorEvery,
    target: () => signIn({ ...shelf.bmc, trust: trustOf(shelf) }, shelf.bmc.mac),
  });
  const explorerContext = (expected: ExpectedPowerShelf): Omit<ExplorerContext, "call"> => ({
    provider,
    clock,
    exploreEvery,
    target: () => signIn(explorerTarget(expected), expected.bmc.mac),
  });
  const runContextOf = ({ hardware, steps, runbooks, instance }: RunWiring) => {
    const begun = new BegunActions();
    const targetsOf = wireStepTargets({ db, secrets, runbooks });
    return ({ machine }: RunThing): Omit<RunContext, "call"> => ({
      clock,
      steps,
      instance,
      begun,
      provider: hardware.providerOf(machine.spec) ?? { name: machine.spec.provider, can: {} },
      targetsOf,
    });
  };
  return new Map<string, HandlerOf>([
    ["power_shelf", withContext(powerShelfHandlers, shelfContext)],
    ["expected_power_shelf", withContext(expectedPowerShelfHandlers, explorerContext)],
    ["machine", withContext(machineHandlers, machineContextOf({ db, secrets, runs }))],
    ["install", withContext(installHandlers, () => ({ clock, installTimeout, stateOf: installStateOf(db) }))],
    ...(runs ? [["run", withContext(runHandlers, runContextOf(runs), onFakeEndpoints)] as const] : []),
  ]);
}

function machineContextOf({
  db,
  secrets,
  runs,
}: Pick<HandlerWiring, "db" | "secrets"> & { runs: RunWiring | undefined }) {
  const targetsOf = runs && wireStepTargets({ db, secrets, runbooks: runs.runbooks });
  return (machine: Machine): Omit<MachineContext, "call"> => ({
    provider: runs?.hardware.providerOf(machine.spec) ?? { name: machine.spec.provider, can: {} },
    cluster: async (name = "") => targetsOf && clusterOnRecord(targetsOf(machine), name),
    bmc: async () => {
      if (!targetsOf) throw new StepFailure("fail", "no machines are worked on here");
      return targetsOf(withFakeEndpoints(machine)).bmc();
    },
  });
}

const installStateOf =
  (db: Database) =>
  async (id: string): Promise<string | undefined> =>
    (await loadInstalls(db, [id])).things[0]?.state.name;

const onFakeEndpoints = (run: RunThing): RunThing => ({ ...run, machine: withFakeEndpoints(run.machine) });

/** Undefined for one that is not on record. One that is there and cannot be read is a reason to wait. */
async function clusterOnRecord(targets: StepTargets, name: string): Promise<ClusterTarget | undefined> {
  try {
    return await targets.cluster(name);
  } catch (error) {
    if (error instanceof StepFailure) return undefined;
    if (!(error instanceof AppError) || isDatabaseTrouble(error)) throw error;
    throw new StepFailure("retry", error.message);
  }
}

const trustOf = ({ bmc, facts }: PowerShelf): TlsTrust => trust(bmc.trust, facts.certificateFingerprint);

/** A shelf that is on record with this BMC has settled how it is spoken to, and which certificate it shows. */
export function explorerTarget({
  bmc,
  existingShelf,
  facts,
}: ExpectedPowerShelf): Omit<BmcTarget, "username" | "password"> {
  const pinned = existingShelf?.certificateFingerprint ?? facts.certificateFingerprint;
  return {
    address: bmc.address ?? "",
    port: bmc.port ?? 443,
    scheme: existingShelf?.scheme ?? "https",
    trust: trust(existingShelf?.trust ?? "pin", pinned),
  };
}

const trust = (mode: TlsTrust["mode"], fingerprint: string | null): TlsTrust =>
  mode === "pin" && fingerprint !== null ? { mode, fingerprint256: fingerprint } : { mode };

/** The engine treats all kinds alike: here the kind's own types are put back on. */
function withContext<T extends Thing, C>(
  handlers: { readonly [state: string]: ((thing: T, context: C) => Promise<Outcome>) | undefined },
  contextOf: (thing: T) => Omit<C, "call">,
  asSeenBy: (thing: T) => T = (thing) => thing,
): HandlerOf {
  return (state) => {
    const handler = handlers[state];
    if (!handler) return undefined;
    const wired: StateHandler = (thing, { call }) =>
      handler(asSeenBy(thing as T), { ...contextOf(thing as T), call } as C);
    return wired;
  };
}
