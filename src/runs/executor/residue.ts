/** What runs leave behind is listed for people, a line each: the step, what it may have left, and why that was not undone. */

/** How a line of residue ends that was to be undone, and is not: nobody answered to it (yet), or the device said no. */
export const notUndone = (how: "failed" | "was refused", why: string): string => ` (undoing it ${how}: ${why})`;
const NOT_UNDONE = / \(undoing it (?:failed|was refused): /;
const REFUSED = / \(undoing it was refused: /;

/** Each line once. What was tried to be undone again, in vain, is listed once: with why it failed the last time. */
export const eachOnce = (residue: readonly string[]): string[] => [...new Set(asTriedLast(residue))];

function asTriedLast(residue: readonly string[]): string[] {
  const beginningOf = (line: string) => line.split(NOT_UNDONE, 1)[0];
  const isTriedAgain = (line: string, later: readonly string[]) =>
    later.some((other) => NOT_UNDONE.test(other) && beginningOf(other) === beginningOf(line));
  return residue.filter(
    (line, at) => !NOT_UNDONE.test(line) || REFUSED.test(line) || !isTriedAgain(line, residue.slice(at + 1)),
  );
}

/**
 * What steps left that were done after all is no more, by how its lines begin; what a device refused to take back may be there
 * beside it.
 */
export const withoutResidueOf = (done: readonly string[], residue: readonly string[]): string[] =>
  residue.filter((line) => !done.some((begins) => line.startsWith(begins)) || REFUSED.test(line));

/**
 * What could not be taken back, and was later: no more is left of it, but for what its step has done for good.
 *
 * @param undone How its lines begin, and of each whether undoing it unmakes all that its step did.
 */
export const withoutUndone = (undone: ReadonlyMap<string, boolean>, residue: readonly string[]): string[] =>
  residue.flatMap((line) => {
    const isWhole = [...undone].find(([begins]) => line.startsWith(begins))?.[1];
    if (isWhole === undefined || !NOT_UNDONE.test(line)) return [line];
    return isWhole ? [] : [line.slice(0, line.search(NOT_UNDONE))];
  });
