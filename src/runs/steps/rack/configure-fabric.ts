import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import { type FabricStatus, type FabricTarget, isFabricRunning } from "../../../capabilities/rack/fabric.ts";
import { type Effect, move, observe } from "../../../kernel/effects.ts";
import { AppError, messageOf, StepFailure } from "../../../kernel/errors.ts";
import { namedList } from "../../../kernel/named-list.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import type { Rack } from "../../../lifecycles/rack/rack.ts";
import { switchLifecycle } from "../../../lifecycles/switch/lifecycle.ts";
import type { StepStatus } from "../../model/run.ts";
import {
  type Acted,
  type ActingContext,
  defineStepOn,
  type On,
  type ProbeReport,
  type StepContext,
} from "../../model/step.ts";

/** What steps on a rack work with that go through the operating systems of its switches. */
export interface OnRack extends On<Rack> {
  /**
   * Where the operating system of a switch is, and how to sign in.
   *
   * @throws StepFailure "endpoint_missing" or "credentials_missing".
   */
  fabricTarget(switchId: string): Promise<FabricTarget>;
}

export type ConfigureFabricPayload = {
  readonly topology: string | null;
  readonly switches: readonly string[];
  /** Somebody asked for it: where it is impossible, it fails. Otherwise it is skipped, and shown. */
  readonly explicit: boolean;
};

type Evidence = {
  /** The switch with the lowest tray index; null: nothing is done. */
  readonly primary: string | null;
  /** Why nothing is done. */
  readonly skipped?: string;
  /** What the primary listed before anything was begun. Null: it did not answer. Absent in what an earlier version noted. */
  readonly jobs?: readonly string[] | null;
};
type Receipt = {
  /** The primary has started the controller: from then on the fabric is only awaited. */
  readonly started: boolean;
  /** What the primary calls what the last call began. */
  readonly job?: string | null;
  /** Switches that do not report the fabric yet, each with what it shows. */
  readonly waiting?: Readonly<Record<string, string>>;
};
type Acting = ActingContext<ConfigureFabricPayload, Evidence, "fabric", never, Receipt, OnRack>;

const MOST_NAMED = 9;

/**
 * Configures the fabric of a rack on its primary switch, and waits until every switch reports it. The receipt says that the controller
 * was started. After a crash before the receipt the primary itself is asked whether the controller runs, before it is started again.
 */
export const configureFabric = defineStepOn<OnRack>()({
  kind: "configure_fabric",
  needs: ["fabric"],
  defaults: { timeout: minutes(15), maxRetries: 0 },
  fromOutside: true,
  parse: (payload, field): ConfigureFabricPayload => {
    if (Array.isArray(payload.switches)) return payload as ConfigureFabricPayload;
    throw new AppError("invalid_argument", `${field}.switches: is required`, { field: `${field}.switches` });
  },

  async before(context): Promise<Evidence> {
    const { payload, target } = context;
    const impossible = await findImpossible(context);
    if (impossible !== undefined) {
      if (payload.explicit) throw impossible;
      return { primary: null, skipped: impossible.message };
    }
    const primary = primaryOf(target, payload.switches);
    return { primary, jobs: await listJobs(context, primary) };
  },

  act: (context) => configure({ ...context, receipt: null }),
  showsOfReceipt: ["started"],

  async probe(context): Promise<ProbeReport> {
    const { evidence, payload, clock } = context;
    if (evidence.primary === null)
      return { state: "done", message: `skipped: ${evidence.skipped ?? ""}`, verdict: "skipped" };
    const seen = await readAll(context, payload.switches);
    const unready = seen.filter(({ status }) => status === null || !isFabricRunning(status));
    if (unready.length === 0) {
      const effects = seen.flatMap(({ id, status }) => [
        told(id, status, evidence.primary, clock.now()),
        move(switchLifecycle, id, "fabric_configured", { ifPossible: true }),
      ]);
      return { state: "done", message: `the fabric is configured on ${seen.length} switches`, effects };
    }
    const [first] = unready;
    const cause = {
      code: "fabric_not_configured",
      facts: { at: "switch_os", ...(first && { name: first.id, shown: first.shown }) },
    } as const;
    const message = describeUnready(unready);
    // Where the time is over, the switches of this list are those that failed.
    const waiting = Object.fromEntries(unready.map(({ id, shown }) => [id, shown]));
    const kept = context.receipt?.started ? { receipt: { ...context.receipt, waiting } } : {};
    return { state: stateOf(context), message, cause, ...kept };
  },

  carryOn: (context: Acting) => configure(context),
  residue: () => "the fabric may be configured in part",
});

/** Its operating system may be starting, after its firmware was written: that is no reason to fail before anything was begun. */
async function listJobs({ can, call, fabricTarget }: Reading, primary: string): Promise<readonly string[] | null> {
  try {
    return await can.fabric.listJobs(await fabricTarget(primary), call);
  } catch (error) {
    if (error instanceof DeviceFailure && error.disposition === "retry") return null;
    throw error;
  }
}

/** Once the controller is started, the switches need only time: a further start could begin everything again. */
function stateOf({ receipt, hasNotBegun, actingAt = null }: Acting): ProbeReport["state"] {
  if (receipt?.started) return "in_progress";
  return actingAt === null || hasNotBegun ? "not_done" : "halfway";
}

async function configure(context: Acting): Promise<Acted<Receipt> | undefined> {
  const { can, call, evidence, payload, fabricTarget, log, receipt, target, runId } = context;
  if (evidence.primary === null) return undefined;
  const primary = await fabricTarget(evidence.primary);
  const known = { job: receipt?.job ?? null, jobsBefore: evidence.jobs ?? null };
  const { job, isStarted } = await can.fabric.configure(primary, { topology: payload.topology ?? "", ...known }, call);
  if (job !== null && job !== known.job)
    log(`[fabric] switch ${evidence.primary} configures the fabric as job ${job}\n`);
  return {
    receipt: { ...receipt, started: isStarted, job: job ?? known.job },
    effects: receipt === null ? leadOutOfError(target, payload.switches, runId) : [],
  };
}

/** A switch in error waits for the fabric, which leads it out. One whose firmware the rack has written waits already. */
const leadOutOfError = ({ id: rack, switches }: Rack, ids: readonly string[], run: string): readonly Effect[] =>
  switches
    .filter(({ id, state }) => state === "error" && ids.includes(id))
    .map(({ id }) => {
      const data = { rack, run, awaitsFabric: true, step: "waiting_for_nmxc_configure" };
      return move(switchLifecycle, id, "rack_requested", { data, ifPossible: true });
    });

/** Of a run that has failed over the fabric: which switches have it, and which do not, as the last probe saw them. */
export function fabricEnded(
  { kind, state, receipt, message }: Pick<StepStatus, "kind" | "state" | "receipt" | "message">,
  switches: readonly string[],
): readonly Effect[] {
  if (kind !== configureFabric.kind || state !== "FAILED") return [];
  const { waiting } = (receipt ?? {}) as Partial<Receipt>;
  const failed = (id: string, why: string) =>
    move(switchLifecycle, id, "fabric_failed", { message: `the fabric is not configured: ${why}`, ifPossible: true });
  return switches.map((id) => {
    // The controller was never started: none of them has it.
    if (waiting === undefined) return failed(id, message);
    const shown = Object.hasOwn(waiting, id) ? waiting[id] : undefined;
    if (shown !== undefined) return failed(id, shown);
    return move(switchLifecycle, id, "fabric_configured", { ifPossible: true });
  });
}

/** Whether every switch of the rack reports the fabric. Changes nothing. */
export const validateFabric = defineStepOn<OnRack>()({
  kind: "validate_fabric",
  needs: ["fabric"],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  fromOutside: true,
  parse: (payload, field): { readonly switches: readonly string[] } => {
    if (Array.isArray(payload.switches)) return payload as { readonly switches: readonly string[] };
    throw new AppError("invalid_argument", `${field}.switches: is required`, { field: `${field}.switches` });
  },
  before: async () => ({}),
  act: async () => undefined,
  async probe(context): Promise<ProbeReport> {
    const seen = await readAll(context, context.payload.switches);
    const unready = seen.filter(({ status }) => status === null || !isFabricRunning(status));
    const [first] = unready;
    if (first === undefined) return { state: "done", message: `the fabric is configured on ${seen.length} switches` };
    const facts = { at: "switch_os", name: first.id, shown: first.shown } as const;
    return { state: "unknown", message: describeUnready(unready), cause: { code: "fabric_not_configured", facts } };
  },
});

/** Why the fabric cannot be configured at all; undefined where it can. */
async function findImpossible({
  payload,
  target,
  fabricTarget,
}: StepContext<ConfigureFabricPayload, "fabric", never, OnRack>): Promise<StepFailure | undefined> {
  const noPrimary = findNoPrimary(target, payload.switches);
  if (noPrimary !== undefined) return noPrimary;
  for (const id of payload.switches) {
    try {
      await fabricTarget(id);
    } catch (error) {
      const isMissing =
        error instanceof StepFailure && (error.code === "endpoint_missing" || error.code === "credentials_missing");
      if (!isMissing) throw error;
      return error;
    }
  }
  return undefined;
}

const indexOf = ({ switches }: Pick<Rack, "switches">, id: string): number | null =>
  switches.find((each) => each.id === id)?.trayIndex ?? null;

/** The primary is the switch with the lowest tray index; without an index for each, only a guess could tell. */
export function findNoPrimary(rack: Pick<Rack, "switches">, ids: readonly string[]): StepFailure | undefined {
  const lacking = ids.find((id) => indexOf(rack, id) === null);
  if (lacking !== undefined) return noIndex(lacking, `switch ${lacking} has no tray index`);
  const twice = ids.find((id) => ids.some((other) => other !== id && indexOf(rack, other) === indexOf(rack, id)));
  if (twice !== undefined)
    return noIndex(twice, `two switches have the tray index ${indexOf(rack, twice)}: ${twice} is one`);
  return ids.length === 0 ? noIndex("", "the rack has no switches") : undefined;
}

const noIndex = (name: string, message: string): StepFailure =>
  new StepFailure("fabric_index_missing", message, { facts: { name } });

export const primaryOf = (rack: Pick<Rack, "switches">, ids: readonly string[]): string =>
  ids.reduce((one, other) => ((indexOf(rack, other) ?? 0) < (indexOf(rack, one) ?? 0) ? other : one));

export interface SeenSwitch {
  readonly id: string;
  /** Null: it does not answer. */
  readonly status: FabricStatus | null;
  /** For people. */
  readonly shown: string;
}

type Reading = Pick<StepContext<unknown, "fabric", never, OnRack>, "can" | "call" | "fabricTarget">;

const readAll = ({ can, call, fabricTarget }: Reading, ids: readonly string[]): Promise<readonly SeenSwitch[]> =>
  Promise.all(
    ids.map(async (id): Promise<SeenSwitch> => {
      try {
        const status = await can.fabric.readStatus(await fabricTarget(id), call);
        return { id, status, shown: describeStatus(status) };
      } catch (error) {
        if (!(error instanceof DeviceFailure)) throw error;
        return { id, status: null, shown: messageOf(error) };
      }
    }),
  );

export const describeStatus = ({ state, additionInfo, reason, error }: FabricStatus): string =>
  [state.replace("_", " "), additionInfo, reason, error].filter((each) => each !== null).join(", ");

export const describeUnready = (unready: readonly SeenSwitch[]): string =>
  `not configured: ${namedList(
    unready.map(({ id, shown }) => `switch ${id} (${shown})`),
    MOST_NAMED,
  )}`;

/** What each switch learns: how the fabric is, whether it is the primary, and which certificate it showed. */
export function told(id: string, status: FabricStatus | null, primary: string | null, at: Date): Effect {
  const { certificateFingerprint, ...seen } = status ?? {};
  return observe(switchLifecycle, id, {
    isPrimary: id === primary,
    ...(status && { fabric: { ...seen, at: at.toISOString() } }),
    ...(certificateFingerprint !== undefined && { nvosCertificateFingerprint: certificateFingerprint }),
  });
}
