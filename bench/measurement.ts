/** One line of the report. */
export interface Measurement {
  readonly what: string;
  /** One value a repetition; the median counts, the others tell how steady it was. */
  readonly values: readonly number[];
  readonly unit: "/s" | "ms" | "×" | "MB" | "MB/s" | "s" | "";
  /** What the same server reaches in the same run without us: no system built on it can be better. */
  readonly limit?: { readonly what: string; readonly value: number };
  /** Absent: for information. */
  readonly target?: number;
  readonly better: "higher" | "lower";
}

export type Verdict = "ok" | "below target" | "below half" | "for information";

export function verdictOf({ values, target, better }: Measurement): Verdict {
  if (target === undefined) return "for information";
  const value = median(values);
  const reached = better === "higher" ? value / target : target / value;
  if (reached >= 1) return "ok";
  return reached >= 0.5 ? "below target" : "below half";
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? at(sorted, middle) : (at(sorted, middle - 1) + at(sorted, middle)) / 2;
}

/** The value that the given share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return at(sorted, Math.max(0, Math.ceil(sorted.length * share) - 1));
}

function at(values: readonly number[], index: number): number {
  const value = values[index];
  if (value === undefined) throw new Error("nothing was measured");
  return value;
}

export function printTable(measurements: readonly Measurement[]): void {
  const header = ["what", "measured", "min – max", "limit in this run", "ratio", "target", "verdict"];
  const rows = measurements.map((one) => {
    const value = median(one.values);
    return [
      one.what,
      show(value, one.unit),
      one.values.length > 1 ? `${show(Math.min(...one.values), "")} – ${show(Math.max(...one.values), "")}` : "",
      one.limit ? `${show(one.limit.value, one.unit)} ${one.limit.what}` : "",
      one.limit ? `${(value / one.limit.value).toFixed(2)}×` : "",
      one.target === undefined ? "" : `${one.better === "higher" ? "≥" : "≤"} ${show(one.target, one.unit)}`,
      verdictOf(one),
    ];
  });
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  console.log([line(header), widths.map((width) => "─".repeat(width)).join("  "), ...rows.map(line)].join("\n"));
}

function show(value: number, unit: string): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const text = value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return unit === "/s" || unit === "×" || unit === "" ? `${text}${unit}` : `${text} ${unit}`;
}
