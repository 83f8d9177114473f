import { setTimeout as pause } from "node:timers/promises";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { storeOf, type ThingStores } from "../../store/lifecycle/things.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { Lease } from "./lease.ts";

const ASK_EVERY = milliseconds(500);
/** A pass that is over sooner is not worth the question: whatever was asked for since shows when it is written. */
const WORTH_ASKING = milliseconds(250);

export interface PassInterrupterOptions {
  readonly db: Database;
  readonly stores: ThingStores;
  readonly leases: ReadonlySet<Lease>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Ends passes that have become pointless while they last, such as that of a run which was canceled since: a slow device would else
 * keep people waiting for what nobody wants any more. Costs one statement now and then, and only while passes last.
 */
export async function runPassInterrupter(options: PassInterrupterOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(ASK_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    await interruptOvertaken(options).catch((error: unknown) =>
      options.log.debug({ err: error }, "overtaken passes could not be read from the database; trying again"),
    );
  }
}

/** Exported for its test. */
export async function interruptOvertaken({ db, stores, leases, clock }: PassInterrupterOptions): Promise<void> {
  const longSince = clock.monotonic() - WORTH_ASKING;
  const lasting = new Map<string, Map<Thing, Lease>>();
  for (const lease of leases) {
    const { thing, handlingSince } = lease;
    const { kind } = lease.work;
    if (thing === undefined || handlingSince > longSince || storeOf(stores, kind).overtaken === undefined) continue;
    const ofKind = lasting.get(kind) ?? new Map<Thing, Lease>();
    lasting.set(kind, ofKind.set(thing, lease));
  }
  for (const [kind, passes] of lasting) {
    const ids = new Set(await storeOf(stores, kind).overtaken?.(db, [...passes.keys()]));
    for (const [thing, lease] of passes) {
      // Meanwhile it may have come to its end, and another one have begun that knows.
      const isSamePass = lease.thing === thing && lease.handlingSince <= longSince;
      if (ids.has(thing.id) && isSamePass) lease.interrupt(`${kind} ${thing.id} is to be ended`);
    }
  }
}
