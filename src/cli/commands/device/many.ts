import { describeFailure, type ExitCode, UsageError } from "../../client/errors.ts";
import type { Json } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { confirm } from "../../terminal/confirm.ts";
import { namedList } from "../../terminal/named-list.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printLine, printList } from "../../terminal/printing.ts";
import type { Chosen } from "./many-options.ts";

/** A verb, as it is carried out on one of several things. */
export interface Verb {
  /** As people are asked: reprovision. */
  readonly word: string;
  readonly noun: string;
  readonly nouns: string;
  /** The ids of what a filter admits. */
  readonly list: (filter: string) => Promise<readonly string[]>;
  readonly act: (id: string) => Promise<Done>;
}

/** What came of it, for people and for programs. */
export interface Done {
  readonly sentence: string;
  readonly facts: { readonly [name: string]: string | number | readonly string[] };
  /** What was asked for has failed, although the request was accepted. */
  readonly failed?: ExitCode;
}

const MOST_NAMED = 10;

/**
 * Carries a verb out on each. One that is refused keeps no other from it; the exit code is that of the first refusal. What is named alone
 * is refused as a single one always was.
 */
export async function actOnEach(session: Session, verb: Verb, chosen: Chosen): Promise<number | undefined> {
  const ids = await chosenIds(session, verb, chosen);
  const [only] = ids;
  if (only !== undefined && ids.length === 1 && chosen.filter === undefined) {
    const { sentence, facts, failed } = await verb.act(only);
    await printDone(session, sentence, facts);
    return failed;
  }
  const results: Result[] = [];
  for (const id of ids) results.push(await resultOf(session, id, () => verb.act(id)));
  return printResults(session, results);
}

/** Each once, in the order in which they were named. */
export async function chosenIds(session: Session, verb: Omit<Verb, "act">, chosen: Chosen): Promise<readonly string[]> {
  const { ids, filter, yes } = chosen;
  const { word, noun, nouns } = verb;
  if ((ids.length === 0) === (filter === undefined))
    throw new UsageError(`either ids or --filter say which ${nouns}`, "such as --filter 'labels.row=7'");
  if (filter === undefined) return [...new Set(ids)];
  const found = await verb.list(filter);
  if (found.length === 0) throw new UsageError(`no ${noun} matches --filter`, `millwright ${noun} list --filter …`);
  const count = found.length === 1 ? `1 ${noun}` : `${found.length} ${nouns}`;
  if (!yes) await confirm(session, { what: `${word} ${count} (${namedList(found, MOST_NAMED)})?` });
  return found;
}

export interface Result {
  readonly id: string;
  readonly exitCode: ExitCode | undefined;
  readonly message: string;
  readonly facts: Done["facts"];
}

export async function resultOf(session: Session, id: string, act: () => Promise<Done>): Promise<Result> {
  try {
    const { sentence, facts, failed } = await act();
    return { id, exitCode: failed, message: sentence, facts };
  } catch (error) {
    if (session.signal.aborted) throw error;
    const { message, exitCode } = await describeFailure(error, undefined);
    return { id, exitCode, message, facts: {} };
  }
}

const columns: readonly Column<Result>[] = [
  { title: "ID", cell: ({ id }) => id },
  {
    title: "RESULT",
    cell: ({ exitCode }) => (exitCode === undefined ? "ok" : "failed"),
    tone: ({ exitCode }) => (exitCode === undefined ? "good" : "bad"),
  },
  { title: "MESSAGE", cell: ({ message }) => message },
];
const json = ({ id, exitCode, message, facts }: Result): Json => ({
  id,
  ok: exitCode === undefined,
  ...(exitCode !== undefined && { exit_code: exitCode }),
  message,
  ...(structuredClone(facts) as { [name: string]: string | number | string[] }),
});

/** A line for each; what failed is counted beside the output. */
export async function printResults(session: Session, results: readonly Result[]): Promise<ExitCode | undefined> {
  await printList(session, { items: results, columns, json }, "Nothing to do.");
  const failed = results.filter(({ exitCode }) => exitCode !== undefined);
  if (failed.length > 0) printLine(session.terminal.stderr, `${failed.length} of ${results.length} failed`);
  return failed[0]?.exitCode;
}
