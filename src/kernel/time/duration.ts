/** A length of time. Branded, so that a bare number of unknown unit is never taken for one. */
export type Duration = number & { readonly __brand: "milliseconds" };

export const milliseconds = (n: number): Duration => n as Duration;
export const seconds = (n: number): Duration => (n * 1_000) as Duration;
export const minutes = (n: number): Duration => (n * 60_000) as Duration;
export const hours = (n: number): Duration => (n * 3_600_000) as Duration;

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** For people: "4m 10s", "1d 2h"; two units at most, since nobody reads a third. */
export function describeDuration(duration: Duration): string {
  if (duration < 1_000) return `${Math.max(0, Math.floor(duration))}ms`;
  let rest: number = duration;
  const parts: string[] = [];
  for (const [name, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${name}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}
