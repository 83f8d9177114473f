import type { Cause } from "../../kernel/causes.ts";
import type { StoredOutcome } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import { findWork, type PlannedLook } from "../../store/lifecycle/work.ts";
import type { Queryable } from "../../store/postgres/database.ts";

/** When the controller looks at the thing next, and whether anybody does. */
export interface NextLook {
  /** For people, what the thing waits for as far as the controller is concerned; empty when there is nothing to say. */
  readonly waits: string;
  /** Nobody is going to look by themselves, or whoever should does not. */
  readonly isStranded: boolean;
  /** What the last looks failed with, when their outcome could not even be kept. */
  readonly lastError: string | null;
  /** Of that; null where it is not known. */
  readonly lastCause: Cause | null;
  readonly failures: number;
  readonly at: Date | null;
}

/** Later than this is not just a busy moment. */
const TAKEN_WITHIN_MS = 30_000;

export async function findNextLook(
  db: Queryable,
  key: ThingKey,
  { now, isAtWork }: { readonly now: Date; readonly isAtWork: boolean },
): Promise<NextLook> {
  const [look] = await findWork(db, [key]);
  const { lastError = null, lastCause = null, failures = 0, wakeAt = null } = look ?? {};
  return {
    ...waitsFor(look, now, isAtWork),
    lastError,
    lastCause: lastCause === null ? null : parseCause({ code: lastCause }),
    failures,
    at: wakeAt,
  };
}

function waitsFor(look: PlannedLook | undefined, now: Date, isAtWork: boolean): Pick<NextLook, "waits" | "isStranded"> {
  const nothing = { waits: "", isStranded: false };
  if (look?.leaseUntil) {
    if (look.leaseUntil.getTime() > now.getTime()) return nothing;
    const waits = `another server to take over: ${look.leaseOwner ?? "the one"} that worked on it has not been heard of since ${iso(look.leaseUntil)}`;
    return { waits, isStranded: true };
  }
  if (!look?.wakeAt) {
    if (!isAtWork) return nothing;
    return { waits: "the safety sweep, which wakes what nobody is going to look at", isStranded: true };
  }
  const late = now.getTime() - look.wakeAt.getTime();
  if (late > TAKEN_WITHIN_MS)
    return { waits: `a server that carries work out: it has been due since ${iso(look.wakeAt)}`, isStranded: true };
  if (late >= 0 || look.failures === 0) return nothing;
  return { waits: `the next attempt at ${iso(look.wakeAt)}, after ${look.failures} in vain`, isStranded: false };
}

/** Why the last pass failed, or what is in the way: with its facts where the thing itself could say so. */
export function causeOfLook({ lastError, lastCause }: NextLook, outcome: StoredOutcome | null): Cause | null {
  const isToldByThing = lastError === null || lastError === outcome?.reason;
  return isToldByThing ? (outcome?.cause ?? lastCause) : lastCause;
}

export const iso = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, "Z");
