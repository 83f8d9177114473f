import type { FabricStatus } from "../../../../capabilities/rack/fabric.ts";
import { isFabricRunning } from "../../../../capabilities/rack/fabric.ts";
import { move } from "../../../../kernel/effects.ts";
import { AppError, causeOf } from "../../../../kernel/errors.ts";
import { minutes } from "../../../../kernel/time/duration.ts";
import type { FabricCheck, FabricPlan } from "../../../../lifecycles/rack/payloads.ts";
import type { Rack } from "../../../../lifecycles/rack/rack.ts";
import { switchLifecycle } from "../../../../lifecycles/switch/lifecycle.ts";
import { type Acted, defineStepOn, type ProbeReport, type StepContext } from "../../../model/step.ts";
import {
  describeStatus,
  describeUnready,
  findNoPrimary,
  primaryOf,
  type SeenSwitch,
  told,
} from "../configure-fabric.ts";
import { mayAnswerLater, type OnManagedRack, requireManager } from "./managed-rack.ts";

type Evidence = {
  /** The switch with the lowest tray index; null: nothing is done. */
  readonly primary: string | null;
  /** Why nothing is done. */
  readonly skipped?: string;
};
type Receipt = { readonly configured: true };
type Context<P> = StepContext<P, never, never, OnManagedRack>;

const parseSwitches =
  <P extends FabricPlan | FabricCheck>() =>
  (payload: object, field: string): P => {
    if ("switches" in payload && Array.isArray(payload.switches)) return payload as P;
    throw new AppError("invalid_argument", `${field}.switches: is required`, { field: `${field}.switches` });
  };

/**
 * Has a rack manager configure the fabric on the primary switch, once, and waits until it reports every switch as configured. Where the
 * answer to the call is lost, the fabric is only awaited: a second call could begin everything again.
 */
export const configureManagedFabric = defineStepOn<OnManagedRack>()({
  kind: "configure_managed_fabric",
  needs: [],
  defaults: { timeout: minutes(15), maxRetries: 0 },
  fromOutside: true,
  parse: parseSwitches<FabricPlan>(),
  residue: () => "the fabric may be configured in part",

  async before(context): Promise<Evidence> {
    const { payload } = context;
    const rack = await withPlaces(context);
    const impossible = findNoPrimary(rack, payload.switches);
    if (impossible === undefined) return { primary: primaryOf(rack, payload.switches) };
    if (payload.explicit) throw impossible;
    return { primary: null, skipped: impossible.message };
  },

  async act(context): Promise<Acted<Receipt> | undefined> {
    const { evidence, payload, target, devices, call } = context;
    if (evidence.primary === null) return undefined;
    const primary = await devices.nodeOf(target.id, { kind: "switch", id: evidence.primary });
    await requireManager(context).configureFabric(primary, payload.topology, call);
    return { receipt: { configured: true } };
  },

  async probe(context): Promise<ProbeReport> {
    const { evidence, payload, clock, actingAt = null, hasNotBegun, receipt } = context;
    if (evidence.primary === null)
      return { state: "done", message: `skipped: ${evidence.skipped ?? ""}`, verdict: "skipped" };
    const report = await readReport(context, payload.switches);
    if (!("seen" in report)) return report;
    const { seen, unready } = report;
    if (unready !== undefined) {
      const isToBegin = receipt === null && (actingAt === null || hasNotBegun === true);
      return { ...unready, state: isToBegin ? "not_done" : receipt === null ? "unknown" : "in_progress" };
    }
    const effects = seen.flatMap(({ id, status }) => [
      told(id, status, evidence.primary, clock.now()),
      move(switchLifecycle, id, "fabric_configured", { ifPossible: true }),
    ]);
    return { state: "done", message: `the fabric is configured on ${seen.length} switches`, effects };
  },
});

/** Whether a rack manager reports every switch of the rack as a part of the fabric. Changes nothing. */
export const validateManagedFabric = defineStepOn<OnManagedRack>()({
  kind: "validate_managed_fabric",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  fromOutside: true,
  parse: parseSwitches<FabricCheck>(),
  before: async () => ({}),
  act: async () => undefined,
  async probe(context): Promise<ProbeReport> {
    const report = await readReport(context, context.payload.switches);
    if (!("seen" in report)) return report;
    const { seen, unready } = report;
    return unready ?? { state: "done", message: `the fabric is configured on ${seen.length} switches` };
  },
});

type Reading = Pick<Context<unknown>, "target" | "devices" | "call"> & Pick<OnManagedRack, "rackManager">;

const nodesOf = ({ devices, target }: Pick<Reading, "devices" | "target">, ids: readonly string[]) =>
  Promise.all(ids.map((id) => devices.nodeOf(target.id, { kind: "switch", id })));

/** The rack manager knows the places of switches that do not tell theirs. */
async function withPlaces(context: Context<FabricPlan>): Promise<Pick<Rack, "switches">> {
  const { target, payload, call } = context;
  const lacking = target.switches.filter(({ id, trayIndex }) => trayIndex === null && payload.switches.includes(id));
  if (lacking.length === 0) return target;
  const ids = lacking.map(({ id }) => id);
  const places = await requireManager(context).readPlaces(await nodesOf(context, ids), call);
  return {
    switches: target.switches.map((each) => ({
      ...each,
      trayIndex: each.trayIndex ?? places.get(each.id)?.trayIndex ?? null,
    })),
  };
}

interface Report {
  readonly seen: readonly SeenSwitch[];
  /** Undefined: all of them are configured. */
  readonly unready: ProbeReport | undefined;
}

/** Silence tells nothing, whatever was begun: it is asked until the time is over. */
async function readReport(context: Reading, ids: readonly string[]): Promise<Report | ProbeReport> {
  const manager = requireManager(context);
  let services: ReadonlyMap<string, FabricStatus>;
  try {
    services = await manager.readFabric(await nodesOf(context, ids), context.call);
  } catch (error) {
    if (!mayAnswerLater(error)) throw error;
    return { state: "unknown", message: error.message, cause: causeOf(error) };
  }
  const seen = ids.map((id): SeenSwitch => {
    const status = services.get(id) ?? null;
    return { id, status, shown: status === null ? "the rack manager does not tell of it" : describeStatus(status) };
  });
  const unready = seen.filter(({ status }) => status === null || !isFabricRunning(status));
  const [first] = unready;
  if (first === undefined) return { seen, unready: undefined };
  const facts = { at: "rack_manager", name: first.id, shown: first.shown } as const;
  const message = describeUnready(unready);
  return { seen, unready: { state: "unknown", message, cause: { code: "fabric_not_configured", facts } } };
}
