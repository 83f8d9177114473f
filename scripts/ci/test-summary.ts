/** What became of one test, or of a file or group that broke before its tests could run. */
export interface TestOutcome {
  /** The file from the root. */
  readonly file: string;
  readonly title: string;
  readonly state: "passed" | "failed" | "skipped";
  /** Why it was skipped, where the test says so. */
  readonly note?: string | undefined;
}

/** What was skipped and why, then the counts on a line of their own. */
export function summarizeTests(outcomes: readonly TestOutcome[]): string {
  const skipped = outcomes.filter(({ state }) => state === "skipped");
  const lines = skipped.map(({ file, title, note }) => `  ${file}: ${title}${note === undefined ? "" : ` (${note})`}`);
  const count = (state: TestOutcome["state"]) => outcomes.filter((outcome) => outcome.state === state).length;
  const counts = `${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`;
  return `${lines.length > 0 ? `Skipped tests:\n${lines.join("\n")}\n` : ""}${counts}\n`;
}
