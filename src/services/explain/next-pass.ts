import type { Cause } from "../../kernel/causes.ts";
import type { StoredOutcome } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import { findWork, type PlannedPass } from "../../store/lifecycle/work.ts";
import type { Queryable } from "../../store/postgres/database.ts";

/** When the next pass of the thing is due, and whether any server will make it. */
export interface NextPass {
  /** For people, what the thing waits for as far as the controller is concerned; empty when there is nothing to say. */
  readonly waits: string;
  /** No pass is planned, or no server makes the planned one. */
  readonly isStranded: boolean;
  /** What the last passes failed with, when their outcome could not even be kept. */
  readonly lastError: string | null;
  /** Of that; null where it is not known. */
  readonly lastCause: Cause | null;
  readonly failures: number;
  readonly at: Date | null;
}

/** Later than this is not just a busy moment. */
const TAKEN_WITHIN_MS = 30_000;

export async function findNextPass(
  db: Queryable,
  key: ThingKey,
  { now, isAtWork }: { readonly now: Date; readonly isAtWork: boolean },
): Promise<NextPass> {
  const [pass] = await findWork(db, [key]);
  const { lastError = null, lastCause = null, failures = 0, wakeAt = null } = pass ?? {};
  return {
    ...waitsFor(pass, now, isAtWork),
    lastError,
    lastCause: lastCause === null ? null : parseCause({ code: lastCause }),
    failures,
    at: wakeAt,
  };
}

function waitsFor(pass: PlannedPass | undefined, now: Date, isAtWork: boolean): Pick<NextPass, "waits" | "isStranded"> {
  const nothing = { waits: "", isStranded: false };
  if (pass?.isParked)
    return { ...nothing, waits: "people: the database was restored from a backup (millwright restore review)" };
  if (pass?.leaseUntil) {
    if (pass.leaseUntil.getTime() > now.getTime()) return nothing;
    const waits = `another server to take over: ${pass.leaseOwner ?? "the server"} that worked on it has been silent since ${iso(pass.leaseUntil)}`;
    return { waits, isStranded: true };
  }
  if (!pass?.wakeAt) {
    if (!isAtWork) return nothing;
    return { waits: "the safety sweep, which wakes things that have no pass planned", isStranded: true };
  }
  const late = now.getTime() - pass.wakeAt.getTime();
  if (late > TAKEN_WITHIN_MS)
    return { waits: `a server that does the work: its pass has been due since ${iso(pass.wakeAt)}`, isStranded: true };
  if (late >= 0 || pass.failures === 0) return nothing;
  return {
    waits: `the next attempt at ${iso(pass.wakeAt)}, after ${pass.failures} failed attempts`,
    isStranded: false,
  };
}

/** Why the last pass failed, or what is in the way: with its facts where the thing itself could say so. */
export function causeOfPass({ lastError, lastCause }: NextPass, outcome: StoredOutcome | null): Cause | null {
  const isToldByThing = lastError === null || lastError === outcome?.reason;
  return isToldByThing ? (outcome?.cause ?? lastCause) : lastCause;
}

export const iso = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, "Z");
