import {
  eachLineOnce,
  isOfSameStep,
  isSameLeft,
  type Residue,
  type ResidueFacts,
  readResidue,
  residueFacts,
  type WhatIsLeft,
} from "../../kernel/residue.ts";

/** What is listed already, and what comes to it. */
export const withMoreResidue = (facts: ResidueFacts, more: readonly Residue[]) =>
  residueFacts(eachLineOnce([...readResidue(facts), ...more]));

/** Each once. What was tried to be undone again, in vain, is listed once: with why it failed the last time. */
export const eachOnce = (residue: readonly Residue[]): Residue[] =>
  eachLineOnce(residue.filter((one, at) => !isTriedAgain(one, residue.slice(at + 1))));

/** What a device refused to undo stays listed: it may be there beside what a later attempt left. */
const isTriedAgain = (one: Residue, later: readonly Residue[]): boolean =>
  one.notUndone !== undefined &&
  one.notUndone.how !== "refused" &&
  later.some((other) => other.notUndone !== undefined && isSameLeft(other, one));

/** What steps left that were done after all is no more; what a device refused to undo may be there beside it. */
export const withoutResidueOf = (done: readonly WhatIsLeft[], residue: readonly Residue[]): Residue[] =>
  residue.filter((one) => one.notUndone?.how === "refused" || !done.some((left) => isOfSameStep(left, one)));

/** What a step left and was undone after all. */
export interface UndoneAfterAll extends WhatIsLeft {
  /** Whether undoing it unmakes all that its step did. */
  readonly isWhole: boolean;
}

/** What could not be undone, and was later: no more is left of it, but for what its step has done for good. */
export const withoutUndone = (undone: readonly UndoneAfterAll[], residue: readonly Residue[]): Residue[] =>
  residue.flatMap((one) => {
    const match = one.notUndone && undone.find((left) => isSameLeft(left, one));
    if (!match) return [one];
    return match.isWhole ? [] : [doneForGood(one)];
  });

const doneForGood = ({ step, round, what }: WhatIsLeft): Residue => ({
  ...(step !== undefined && { step }),
  ...(round !== undefined && { round }),
  what,
});
