/** By how many milliseconds the server's clock is ahead of this computer's. */
let aheadBy = 0;

/** Answers carry the server's time to the second. A difference that so little can explain is none. */
export function noteServerTime(date: string | null): void {
  const told = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(told)) return;
  const difference = told + 500 - Date.now();
  aheadBy = Math.abs(difference) < 2_000 ? 0 : difference;
}

/** Ages are told by the server's clock: the laptop's may be hours off. */
export const serverNow = (): number => Date.now() + aheadBy;
