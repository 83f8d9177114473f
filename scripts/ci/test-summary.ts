/** What became of one test, or of a file or group that broke before its tests could run. */
export interface TestOutcome {
  /** The file from the root. */
  readonly file: string;
  readonly title: string;
  readonly state: "passed" | "failed" | "skipped";
  /** Why it was skipped, where the test says so. */
  readonly note?: string | undefined;
  /** A test that passes only when it is tried again hides something: a race, or a promise that a slow machine breaks. */
  readonly triedAgain?: boolean;
}

/** How long one file of tests took, start and end included. */
export interface FileTime {
  readonly file: string;
  readonly seconds: number;
}

export interface SummaryOptions {
  readonly times?: readonly FileTime[];
  /** Where every counterpart can be installed, a test that lacks one has failed. */
  readonly counterpartsRequired?: boolean;
}

const SLOWEST = 10;
/** A skipped test names its missing counterpart in its note, or in parentheses in the title of its group. */
const LACKING_NOTE = /^needs (?!Linux and root)/;
const LACKING_TITLE = /\(needs [^()]+\)/;

/** What was slow, skipped, tried again and failed; then the counts, alone on the last line. */
export function summarizeTests(outcomes: readonly TestOutcome[], options: SummaryOptions = {}): string {
  const judged = options.counterpartsRequired ? outcomes.map(requireCounterpart) : outcomes;
  const of = (state: TestOutcome["state"]) => judged.filter((outcome) => outcome.state === state);
  const [passed, failed, skipped] = [of("passed"), of("failed"), of("skipped")];
  const again = passed.filter(({ triedAgain }) => triedAgain);
  return [
    ...listSlowest(options.times ?? []),
    ...list("Skipped tests", skipped),
    ...list(`Passed on the second try only: ${again.length}`, again),
    ...list(`Failed tests: ${failed.length}`, failed),
    `${passed.length} passed, ${failed.length} failed, ${skipped.length} skipped`,
    "",
  ].join("\n");
}

function requireCounterpart(outcome: TestOutcome): TestOutcome {
  const lacks =
    outcome.state === "skipped" && (LACKING_NOTE.test(outcome.note ?? "") || LACKING_TITLE.test(outcome.title));
  return lacks ? { ...outcome, state: "failed", note: outcome.note ?? "its counterpart is not installed" } : outcome;
}

function list(heading: string, outcomes: readonly TestOutcome[]): string[] {
  if (outcomes.length === 0) return [];
  const lines = outcomes.map(({ file, title, note }) => `  ${file}: ${title}${note === undefined ? "" : ` (${note})`}`);
  return [heading, ...lines];
}

function listSlowest(times: readonly FileTime[]): string[] {
  if (times.length === 0) return [];
  const slowest = times.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  return [
    "Slowest test files",
    ...slowest.map(({ file, seconds }) => `  ${seconds.toFixed(0).padStart(4)} s  ${file}`),
  ];
}
