import type { Cause } from "./causes.ts";
import { isJsonObject, type JsonObject } from "./lifecycle.ts";
import { parseCause } from "./stored-cause.ts";

/** Why what a step left was not undone. failed: nobody answered (yet). refused: the device said no. goes_on: the device is at it. */
export const NOT_UNDONE = ["failed", "refused", "goes_on"] as const;

/** By what decisions tell apart what steps leave. */
export type WhatIsLeft = {
  /** The step that left it. Absent in what a version kept that knew lines only: there `what` begins with the step. */
  readonly step?: string;
  /** In which round of the step, from the second on. What different rounds leave are different things. */
  readonly round?: number;
  /** What the step may have left, as its kind says it. The name of a step alone is not enough: another plan has the same names. */
  readonly what: string;
};

/** One thing that a run left behind. A type and no interface, so that it is JSON to the compiler. */
export type Residue = WhatIsLeft & {
  /** What the undo found instead; people read it in the place of `what`. */
  readonly found?: string;
  /** It was to be undone, and is not. */
  readonly notUndone?: {
    readonly how: (typeof NOT_UNDONE)[number];
    /** For people; empty where `found` says it. */
    readonly why: string;
    /** The same for programs. */
    readonly cause?: Cause;
  };
};

/**
 * The facts of a thing that lists residue. The lines are what versions before kept, and still decide what is listed: such a
 * version can read every row, and what it changes there holds. A record only says more about the line that it renders to.
 */
export interface ResidueFacts {
  /** For people, a line each. */
  readonly residue: readonly string[];
  readonly residueRecords: readonly JsonObject[];
}

const ENDINGS = { failed: "undoing it failed", refused: "undoing it was refused" } as const;

/** What people read, without why it was not undone. */
function headOf({ step, round, what }: WhatIsLeft): string {
  if (step === undefined) return what;
  return round === undefined ? `${step}: ${what}` : `${step} (round ${round}): ${what}`;
}

export const isSameLeft = (one: WhatIsLeft, other: WhatIsLeft): boolean => headOf(one) === headOf(other);

/** By the same step, in whichever round. */
export const isOfSameStep = ({ round: _, ...one }: WhatIsLeft, { round: __, ...other }: WhatIsLeft): boolean =>
  isSameLeft(one, other);

/** For people. */
export function residueLine({ found, notUndone, ...left }: Residue): string {
  const head = headOf(found === undefined ? left : { ...left, what: found });
  return notUndone === undefined || notUndone.how === "goes_on"
    ? head
    : `${head} (${ENDINGS[notUndone.how]}: ${notUndone.why})`;
}

export const residueLines = (residue: readonly Residue[]): string[] => residue.map(residueLine);

/** Each once, as people see it. */
export const eachLineOnce = (residue: readonly Residue[]): Residue[] => [
  ...new Map(residue.map((one) => [residueLine(one), one])).values(),
];

/** As it is kept. */
export const residueFacts = (residue: readonly Residue[]): { residue: string[]; residueRecords: Residue[] } => ({
  residue: residueLines(residue),
  residueRecords: [...residue],
});

/** As it was kept, by this version or one before. */
export function readResidue({ residue, residueRecords }: ResidueFacts): Residue[] {
  const byLine = new Map(residueRecords.flatMap(parseRecord).map((record) => [residueLine(record), record]));
  return residue.map((line) => byLine.get(line) ?? readOldLine(line));
}

/** One that a newer version wrote in another way is left out: its line is there. */
function parseRecord({ step, round, what, found, notUndone }: JsonObject): Residue[] {
  if (typeof what !== "string") return [];
  const record = {
    ...(typeof step === "string" && { step }),
    ...(typeof round === "number" && { round }),
    what,
    ...(typeof found === "string" && { found }),
  };
  if (notUndone === undefined) return [record];
  if (!isJsonObject(notUndone) || typeof notUndone.why !== "string") return [];
  const how = NOT_UNDONE.find((word) => word === notUndone.how);
  const cause = parseCause(notUndone.cause);
  return how === undefined ? [] : [{ ...record, notUndone: { how, why: notUndone.why, ...(cause && { cause }) } }];
}

const OLD_ENDING = /^(.*?) \(undoing it (failed|was refused): (.*)\)$/s;

/** The one place that reads rows of versions that kept lines only, by how those lines end. */
function readOldLine(line: string): Residue {
  const [, what, how, why] = OLD_ENDING.exec(line) ?? [];
  if (what === undefined || why === undefined) return { what: line };
  return { what, notUndone: { how: how === "failed" ? "failed" : "refused", why } };
}
