import { type CreateEffect, move } from "../../kernel/effects.ts";
import { type Handlers, happened, nothingToDo, type Outcome, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, minutes, seconds } from "../../kernel/time/duration.ts";
import { expectedRackLifecycle } from "../expected-rack/lifecycle.ts";
import type { rackLifecycle } from "./lifecycle.ts";
import { describeCounts, describeUnready, isDiscovered } from "./members.ts";
import type { ValidationPayloads } from "./payloads.ts";
import { planValidation, planWork, type RackLimits, type Work } from "./plan-work.ts";
import type { Rack } from "./rack.ts";
import { releasesDevices } from "./release.ts";

/** A run that the rack starts on itself: handlers name it by its id, and the effect makes it. */
export interface StartedRun {
  readonly id: string;
  readonly effect: CreateEffect;
}

export interface RackContext {
  readonly clock: Clock;
  readonly limits: RackLimits;
  startMaintenance(rack: Rack, work: Work): StartedRun;
  startValidation(rack: Rack, payloads: ValidationPayloads): StartedRun;
}

/** Devices wake their rack when they move. What a check of a machine finds is no move, so that a rack that waits for it asks again soon. */
const DISCOVERY_RECHECK: Duration = seconds(3);
/** What is missing after a minute takes a person, or a device that starts. */
const LATER_RECHECK: Duration = seconds(15);
const RECHECK: Duration = minutes(1);

/**
 * A rack does nothing itself: runs on it do. Its handlers begin them, each in the commit that moves the rack, and see whether they are
 * still there.
 */
export const rackHandlers: Handlers<typeof rackLifecycle, Rack, RackContext> = {
  async created(rack) {
    const { profileId, profile } = rack;
    if (profileId === null) return waitFor("it has no profile: add it to the expected racks", RECHECK, MISSING);
    if (profile === null) return waitFor(`there is no rack profile ${profileId}`, RECHECK, MISSING);
    return waitFor(`devices are missing: ${describeCounts(rack)}`, RECHECK, MISSING);
  },

  async discovering(rack, context) {
    if (!isDiscovered(rack)) return waitFor(describeUnready(rack), discoveryRecheck(rack, context), MISSING);
    return begin(rack, context) as Outcome<"maintenance_begun">;
  },

  async maintenance(rack) {
    return isUnderWay(rack) ? nothingToDo(RECHECK) : lost(rack);
  },

  async validating(rack, context) {
    if (rack.state.run !== undefined) return isUnderWay(rack) ? nothingToDo(RECHECK) : lost(rack);
    const { id, effect } = context.startValidation(rack, planValidation(rack));
    return happened("validation_started", { data: { run: id }, effects: [effect] });
  },

  ready: async (rack, context) => begin(rack, context),
  error: async (rack, context) => begin(rack, context),

  async deleting({ id, trays, switches, shelves }) {
    const left = [...trays, ...switches, ...shelves].map(({ id }) => id);
    // What the site says of it stays, and waits for a rack again.
    const expected = move(expectedRackLifecycle, id, "rack_deleted", { ifPossible: true });
    if (left.length === 0) return happened("removed", { effects: [expected] });
    return waitFor(`${left.length} devices still name the rack: ${left.join(", ")}`, RECHECK);
  },
};

const discoveryRecheck = ({ stateSince }: Rack, { clock }: RackContext): Duration =>
  clock.now().getTime() - stateSince.getTime() < minutes(1) ? DISCOVERY_RECHECK : LATER_RECHECK;

const MISSING = { cause: { code: "devices_missing" } } as const;

/** The commit takes the claims on all devices or on none, and starts the run: all of it, or nothing but that the rack waits. */
function begin(rack: Rack, context: RackContext): Outcome<"maintenance_begun" | "request_refused"> {
  const work = planWork(rack, context.limits);
  if (work === null) return nothingToDo(RECHECK);
  if (work.type === "refused") return happened("request_refused", { message: work.why });
  const { id, effect } = context.startMaintenance(rack, work);
  return happened("maintenance_begun", {
    data: { trigger: work.trigger, run: id },
    facts: { workSet: work.workSet },
    effects: [effect],
  });
}

const ENDED: ReadonlySet<string> = new Set(["SUCCEEDED", "FAILED", "CANCELED"]);

const isUnderWay = ({ related }: Rack): boolean => {
  const run = related?.run;
  return run != null && !ENDED.has(run.state);
};

function lost(rack: Rack) {
  const {
    state: { run },
    related,
  } = rack;
  return happened("run_lost", {
    message: related?.run ? `run ${run} has ended without leading the rack on` : `run ${run} does not exist any more`,
    cause: { code: "target_gone", facts: { what: "run", name: run ?? "" } },
    effects: releasesDevices(rack),
  });
}
