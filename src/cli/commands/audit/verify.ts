import {
  AuditService,
  type JournalProblem,
  type VerifyJournalResponse,
} from "../../../../contract/millwright/v1/audit_pb.js";
import { EXIT } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printable } from "../../terminal/printable.ts";
import { printOne } from "../../terminal/printing.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";

export interface VerifyOptions {
  readonly head?: string;
}

interface Verdict {
  readonly seals: number;
  readonly entries: number;
  readonly removed: number;
  readonly last: VerifyJournalResponse;
}

/** Exit code 1 if something is not as it was sealed. */
export async function verifyAudit(session: Session, { head = "" }: VerifyOptions): Promise<number> {
  const verdict = await readVerdict(session, head);
  const { problem } = verdict.last;
  await printOne(session, {
    item: verdict,
    columns: [
      { title: "VERDICT", cell: ({ last }) => (last.problem ? last.problem.kind : "good") },
      { title: "SEALS", cell: ({ seals }) => String(seals) },
      { title: "ENTRIES", cell: ({ entries }) => String(entries) },
      { title: "HEAD", cell: ({ last }) => last.head },
    ],
    json: jsonOfVerdict,
    details: [
      ["History", problem ? "NOT AS IT WAS SEALED" : "as it was sealed", problem ? "bad" : "good"],
      ["Problem", problem ? describe(problem) : "", "bad"],
      ["Verified", `${verdict.entries} entries under ${verdict.seals} seals`],
      ["Removed", verdict.removed > 0 ? `${verdict.removed} of them by retention, as signed for` : ""],
      ["Sealed up to", clockTime(verdict.last.sealedAt)],
      ["Not sealed yet", notSealed(verdict.last, session.terminal.now())],
      ["Head", verdict.last.head],
    ],
  });
  return problem ? EXIT.operationFailed : EXIT.ok;
}

async function readVerdict(session: Session, head: string): Promise<Verdict> {
  const client = await session.client(AuditService);
  const sum = { seals: 0, entries: 0, removed: 0 };
  let afterSeal = 0n;
  for (;;) {
    const last = await client.verifyJournal(
      { afterSeal, head: afterSeal === 0n ? head : "" },
      { signal: session.signal },
    );
    sum.seals += Number(last.seals);
    sum.entries += Number(last.entries);
    sum.removed += Number(last.removedEntries);
    if (last.nextSeal === 0n) return { ...sum, last };
    afterSeal = last.nextSeal;
  }
}

/** By what the server calls it; a word that came with a later version is shown as it is. */
const SENTENCES: Readonly<Record<string, (problem: JournalProblem) => string>> = {
  entry_changed: (problem) => `${entryOf(problem)} was changed after seal ${whichSeal(problem)}`,
  entry_deleted: (problem) =>
    problem.cursor === ""
      ? `the first entry under seal ${whichSeal(problem)} was deleted`
      : `the entry after ${entryOf(problem)} was deleted, under seal ${whichSeal(problem)}`,
  entry_inserted: (problem) => `${entryOf(problem)} was inserted later, under seal ${whichSeal(problem)}`,
  seal_changed: (problem) => `seal ${whichSeal(problem)} was changed, or made with another key`,
  seal_missing: ({ seal }) => `seal ${seal} is missing`,
  head_missing: ({ seal }) =>
    `seal ${seal} is not the one of --head: the database is an older copy, or its seals were made again`,
};

const describe = (problem: JournalProblem): string =>
  printable(SENTENCES[problem.kind]?.(problem) ?? `${problem.kind}, seal ${problem.seal}`);

const entryOf = ({ cursor, thingKind, thingId, version }: JournalProblem) =>
  `entry ${cursor} (${thingKind} ${thingId}, version ${version})`;
const whichSeal = ({ seal, sealedAt }: JournalProblem) => `${seal} of ${clockTime(sealedAt)}`;

function notSealed({ unsealedEntries, unsealedSince }: VerifyJournalResponse, now: Date): string {
  if (unsealedEntries === 0n) return "";
  const count = unsealedEntries >= 10_000n ? "10000 entries or more" : `${unsealedEntries} entries`;
  return `${count}, the oldest for ${age(unsealedSince, now)}`;
}

const jsonOfVerdict = ({ seals, entries, removed, last }: Verdict) => ({
  ...{ good: last.problem === undefined, seals, entries, removedEntries: removed, head: last.head },
  sealedAt: isoTime(last.sealedAt),
  unsealedEntries: Number(last.unsealedEntries),
  ...(last.problem && {
    problem: {
      kind: last.problem.kind,
      seal: Number(last.problem.seal),
      cursor: last.problem.cursor,
      thingKind: last.problem.thingKind,
      thingId: last.problem.thingId,
      version: Number(last.problem.version),
      text: describe(last.problem),
    },
  }),
});
