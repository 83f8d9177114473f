import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { CallContext } from "../../capabilities/call.ts";
import { type Batcher, createBatcher } from "../../kernel/batcher.ts";
import { messageOf, StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Log } from "../../kernel/log.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import { observe } from "../../lifecycles/machine/conditions.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { interpretSighting, mayRestBmc, type Verdict } from "../../lifecycles/machine/observation.ts";
import { contradictionOf, type Sighting } from "../../lifecycles/machine/sighting.ts";
import type { ThingStores } from "../../store/lifecycle/things.ts";
import {
  type CheckRelease,
  type ClaimedCheck,
  claimChecks,
  releaseChecks,
} from "../../store/machine/condition-checks.ts";
import { machineStore } from "../../store/machine/machines.ts";
import { type MachineSighting, recordSightings } from "../../store/machine/sightings.ts";
import { type Database, retryOnConflict } from "../../store/postgres/database.ts";
import { runBounded } from "../lease/bounded-handler.ts";
import { areMacsDue, newMacs } from "./mac-reading.ts";
import { type CheckPlaces, checkMachine, inspectMachine, readMacs } from "./machine-check.ts";
import { NodeLists } from "./node-lists.ts";

/** What the reconciler reports for metrics. */
export interface ReconcilerObserver {
  checked(seen: { readonly outcome: "unchanged" | "changed" | "overtaken" | "failed"; readonly took: Duration }): void;
}

export interface ReconcilerOptions {
  readonly db: Database;
  readonly stores: ThingStores;
  /** Where the machines are to be checked, in their order; many at once, so that a batch costs a few queries. */
  readonly placesOf: (machines: readonly Machine[]) => Promise<readonly CheckPlaces[]>;
  readonly log: Log;
  /** How often each machine is checked, while the rate allows it. */
  readonly interval: Duration;
  /** Checks a second at most. */
  readonly rate: number;
  /** How long the BMC of a machine need not be read while it reports events. Absent: it is read with each check. */
  readonly bmcRestsFor?: Duration;
  readonly owner?: string;
  readonly clock?: Clock;
  readonly observer?: ReconcilerObserver;
  /** Machines checked at the same time. */
  readonly inFlight?: number;
  readonly random?: () => number;
}

/** No device request of a check takes longer: two that fail, and the pause between them, still show within half a minute. */
const LONGEST_REQUEST = seconds(5);
/** No check takes longer; one that hangs is aborted, then left behind. */
const LONGEST_CHECK = seconds(7);
/** Once in a machine's life it is read whole. */
const LONGEST_INSPECTION = seconds(10);
/** From the claim on no device is touched after this. */
const TOUCHES_UNTIL = seconds(20);
/** Whoever takes over from a dead replica finds that none of its requests can still be under way. */
const LEASE = seconds(30);
const IDLE_POLL = milliseconds(500);
const BUSY_POLL = milliseconds(50);
/** After a miss that is not believed yet, and after a change that came in between. */
const SOON = seconds(2);

/** A check that has been made, with what is to become of it. */
interface Checked {
  readonly check: ClaimedCheck;
  readonly sighting: MachineSighting | undefined;
  readonly release: CheckRelease;
}

/**
 * Keeps the conditions of machines true: it checks each of them again and again.
 *
 * The database says who is due, and leases it, so that any number of replicas share the fleet. The rate is a budget: a fleet that
 * is larger than it allows is checked less often, in turn, and nothing piles up. Only what changed is written.
 */
export class ConditionReconciler {
  readonly #options: Required<ReconcilerOptions>;
  readonly #nodes: NodeLists;
  readonly #writer: Batcher<Checked, boolean>;
  readonly #underWay = new Set<Promise<void>>();
  #inFlight = 0;
  #tokens = 0;
  #countedAt: number;

  constructor(options: ReconcilerOptions) {
    this.#options = {
      bmcRestsFor: milliseconds(0),
      owner: randomUUID(),
      clock: systemClock,
      observer: { checked() {} },
      inFlight: 400,
      random: Math.random,
      ...options,
    };
    const { clock, log, interval } = this.#options;
    this.#countedAt = clock.monotonic();
    this.#tokens = options.rate;
    this.#nodes = new NodeLists({ clock, log, freshFor: milliseconds(Math.min(interval / 2, seconds(5))) });
    this.#writer = createBatcher({ most: 250, atOnce: 2, run: (checked) => this.#write(checked) });
  }

  /** Runs until the signal aborts; then hands back what it has not seen, and resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    while (!signal.aborted) {
      let rest = seconds(1);
      try {
        rest = await this.#claim(signal);
      } catch (error) {
        log.warn({ err: error }, "checks of machines could not be claimed; trying again");
      }
      await pause(rest, undefined, { signal }).catch(() => undefined);
    }
    await Promise.all(this.#underWay);
  }

  /** Claims as many as the budget allows, begins their checks, and returns how long to wait before the next claim. */
  async #claim(signal: AbortSignal): Promise<Duration> {
    const { db, owner, inFlight, clock, bmcRestsFor } = this.#options;
    const limit = Math.min(this.#budget(), inFlight - this.#inFlight);
    if (limit < 1) return BUSY_POLL;
    const askedAt = clock.monotonic();
    const claimed = await claimChecks(db, { owner, limit, leaseFor: LEASE, bmcRestsFor });
    this.#tokens -= claimed.length;
    if (claimed.length === 0) return IDLE_POLL;
    this.#inFlight += claimed.length;
    const checking = this.#checkAll(claimed, askedAt, signal).finally(() => {
      this.#underWay.delete(checking);
    });
    this.#underWay.add(checking);
    return claimed.length < limit ? IDLE_POLL : BUSY_POLL;
  }

  /** Up to one second's worth is saved up. */
  #budget(): number {
    const { rate, clock } = this.#options;
    const now = clock.monotonic();
    this.#tokens = Math.min(this.#tokens + ((now - this.#countedAt) / 1_000) * rate, Math.max(rate, 1));
    this.#countedAt = now;
    return Math.floor(this.#tokens);
  }

  async #checkAll(claimed: readonly ClaimedCheck[], askedAt: number, signal: AbortSignal): Promise<void> {
    const { db, placesOf, log } = this.#options;
    let left = claimed.length;
    try {
      const ids = claimed.map(({ machineId }) => machineId);
      const { things, unreadable } = await machineStore.load(db, ids);
      for (const { id, error } of unreadable)
        log.warn({ id, error }, "a machine's row cannot be read; the machine is not checked");
      const places = await placesOf(things);
      const byId = new Map(things.map((machine, index) => [machine.id as string, { machine, places: places[index] }]));
      await Promise.all(
        claimed.map(async (check) => {
          const found = byId.get(check.machineId);
          if (found?.places) await this.#check(check, found.machine, found.places, { askedAt, signal });
          this.#inFlight -= 1;
          left -= 1;
        }),
      );
    } catch (error) {
      // Their leases end by themselves.
      log.warn({ err: error }, "machines could not be checked; they fall due again");
    } finally {
      this.#inFlight -= left;
    }
  }

  async #check(
    check: ClaimedCheck,
    machine: Machine,
    places: CheckPlaces,
    { askedAt, signal }: { readonly askedAt: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { clock, observer, log, db } = this.#options;
    const startedAt = clock.monotonic();
    const took = () => milliseconds(clock.monotonic() - startedAt);
    try {
      const call = this.#frame(machine.id, askedAt, signal);
      const { verdict, inspected, macsRead } = await this.#see(check, machine, places, call);
      const told = { ...verdict, alerts: places.alerts, macsRead };
      const written = await this.#writer.submit(this.#checkedOf(check, machine, told, inspected));
      const isNews = isChange(machine, verdict, inspected, clock.now());
      observer.checked({ outcome: !written ? "overtaken" : isNews ? "changed" : "unchanged", took: took() });
    } catch (error) {
      const after = signal.aborted ? milliseconds(0) : this.#jittered(this.#options.interval);
      const release = { ...check, after, checked: false };
      await releaseChecks(db, [release]).catch(() => undefined); // else its lease ends by itself
      if (signal.aborted) return;
      observer.checked({ outcome: "failed", took: took() });
      log.warn({ id: machine.id, reason: messageOf(error) }, "the check of a machine failed; trying again");
    }
  }

  async #see(check: ClaimedCheck, machine: Machine, places: CheckPlaces, frame: CallContext) {
    const { clock } = this.#options;
    const bmcRests = check.bmcRests && mayRestBmc(machine) && !areMacsDue(machine, check.macsAge);
    const around = { machine, places, nodes: this.#nodes, clock, bmcRests };
    const sighting = await runBounded(frame, (call) => checkMachine({ ...around, call }), LONGEST_CHECK);
    const verdict = interpretSighting(machine, sighting, check.misses, check.rackAtWork);
    if (!verdict.mayBeInspected) {
      const macs =
        verdict.mayReadMacs && areMacsDue(machine, check.macsAge)
          ? await runBounded(frame, (call) => readMacs({ ...around, call }), LONGEST_INSPECTION)
          : undefined;
      const learnt = { ...verdict, facts: { ...verdict.facts, ...newMacs(machine, macs) } };
      return { verdict: learnt, inspected: undefined, macsRead: macs !== undefined };
    }
    const facts = await runBounded(frame, (call) => inspectMachine({ ...around, call }), LONGEST_INSPECTION);
    if (facts === undefined || contradictionOf(machine, identityOf(facts)) === undefined)
      return { verdict, inspected: facts, macsRead: facts !== undefined };
    // The BMC of a provider without vitals tells only now whose it is; or somebody moved a cable in between.
    const wrong = interpretSighting(machine, withIdentity(sighting, facts), check.misses, check.rackAtWork);
    return { verdict: wrong, inspected: undefined, macsRead: false };
  }

  #frame(id: string, askedAt: number, signal: AbortSignal): CallContext {
    const { clock } = this.#options;
    return {
      signal,
      subject: `conditions of machine ${id}`,
      mayTouchDevice(wanted) {
        const left = askedAt + TOUCHES_UNTIL - clock.monotonic();
        if (left <= 0) throw new StepFailure("stopped", "the check took too long; the next check follows");
        return milliseconds(Math.min(wanted, LONGEST_REQUEST, left));
      },
    };
  }

  #checkedOf(
    check: ClaimedCheck,
    machine: Machine,
    verdict: Verdict & Pick<CheckPlaces, "alerts"> & { readonly macsRead: boolean },
    inspected: JsonObject | undefined,
  ): Checked {
    const { clock, interval } = this.#options;
    const isNews = isChange(machine, verdict, inspected, clock.now());
    const observedAt = clock.now().toISOString();
    const facts = Object.keys(verdict.facts).length > 0 ? { ...verdict.facts, observedAt } : {};
    const isDoubtful = Object.values(verdict.misses).some((count) => count === 1);
    return {
      check,
      sighting: isNews
        ? {
            check,
            machine,
            observed: verdict.observed,
            alerts: verdict.alerts,
            facts: { ...facts, ...inspected },
            inspected: inspected !== undefined,
          }
        : undefined,
      release: {
        ...check,
        misses: verdict.misses,
        after: isDoubtful ? SOON : this.#jittered(interval),
        checked: true,
        bmcRead: verdict.isBmcSeen,
        macsRead: verdict.macsRead,
      },
    };
  }

  /** Writes what changed, hands everything back, and says of each whether it was written. */
  async #write(checked: readonly Checked[]): Promise<readonly boolean[]> {
    const { db, stores, clock } = this.#options;
    const sightings = checked.flatMap(({ sighting }) => sighting ?? []);
    const written: ReadonlySet<string> =
      sightings.length === 0
        ? new Set()
        : await retryOnConflict(() =>
            db.transaction((tx) =>
              recordSightings(tx, stores, sightings, { actor: "condition reconciler", now: clock.now() }),
            ),
          );
    const isOvertaken = ({ sighting }: Checked) => sighting !== undefined && !written.has(sighting.machine.id);
    await releaseChecks(
      db,
      checked.map((one) => (isOvertaken(one) ? { ...one.check, after: SOON, checked: false } : one.release)),
    );
    return checked.map((one) => !isOvertaken(one));
  }

  /** Spread, so that machines that were registered as one do not come due as one for ever. */
  #jittered(duration: Duration): Duration {
    return milliseconds(duration * (0.8 + this.#options.random() * 0.4));
  }
}

const identityOf = ({ serial, systemUuid }: JsonObject) => ({
  serial: typeof serial === "string" ? serial : null,
  systemUuid: typeof systemUuid === "string" ? systemUuid : null,
});

function withIdentity(sighting: Sighting, facts: JsonObject): Sighting {
  const { bmc } = sighting;
  return bmc.is === "seen" ? { ...sighting, bmc: { ...bmc, what: { ...bmc.what, ...identityOf(facts) } } } : sighting;
}

const isChange = (machine: Machine, verdict: Verdict, inspected: JsonObject | undefined, now: Date): boolean =>
  inspected !== undefined ||
  Object.keys(verdict.facts).length > 0 ||
  observe(machine.conditions, verdict.observed, now) !== machine.conditions;
