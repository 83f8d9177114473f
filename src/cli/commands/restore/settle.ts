import {
  ParkedVerdict,
  RestoreService,
  type SettledThing,
  SettledThingSchema,
} from "../../../../contract/millwright/v1/restore_pb.js";
import { EXIT, UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";

const VERDICTS = {
  resume: ParkedVerdict.RESUME,
  adopt: ParkedVerdict.ADOPT,
  abandon: ParkedVerdict.ABANDON,
} as const;
export type SettleWord = keyof typeof VERDICTS;

export interface SettleOptions extends ConfirmOptions {
  readonly all?: true;
  readonly filter?: string;
  readonly force?: true;
}

interface Thing {
  readonly kind: string;
  readonly id: string;
}

const AT_ONCE = 50;

const columns = (word: string): readonly Column<SettledThing>[] => [
  { title: "THING", cell: ({ kind, id }) => `${kind}/${id}` },
  { title: "RESULT", cell: ({ error }) => (error === "" ? `${word}: done` : "still parked") },
  {
    title: "WHY",
    cell: ({ error, next, seen }) => (error === "" ? seen : `${error}${next === "" ? "" : `; ${next}`}`),
  },
];

/** Each is decided on by itself: one that is refused keeps no other from its turn. */
export async function settleParked(
  session: Session,
  { word, things: given }: { readonly word: SettleWord; readonly things: readonly string[] },
  options: SettleOptions,
): Promise<number | undefined> {
  const { all = false, filter, force = false, yes = false } = options;
  if ([given.length > 0, all, filter !== undefined].filter(Boolean).length !== 1)
    throw new UsageError(
      "either things, --all or --filter say what",
      "millwright restore list --filter status=waiting",
    );
  const things = given.length > 0 ? given.map(thingOf) : await waiting(session, filter);
  if (!yes && given.length === 0) await confirm(session, { what: `${word} ${things.length} parked things?` });
  const client = await session.client(RestoreService);
  const results: SettledThing[] = [];
  for (let at = 0; at < things.length; at += AT_ONCE) {
    const some = things.slice(at, at + AT_ONCE);
    const asked = { things: some, verdict: VERDICTS[word], force };
    results.push(...(await client.settleParkedWork(asked, { signal: session.signal })).results);
  }
  const shown = {
    items: results,
    columns: columns(word),
    json: (item: SettledThing) => jsonOf(SettledThingSchema, item),
  };
  await printList(session, shown, "Nothing is parked.");
  if (all) return endIfNothingWaits(session);
  return results.some(({ error }) => error !== "") ? EXIT.operationFailed : undefined;
}

function thingOf(word: string): Thing {
  const [, kind, id] = /^([a-z_]+)\/(.+)$/.exec(word) ?? [];
  if (kind === undefined || id === undefined)
    throw new UsageError(
      `${JSON.stringify(word)} is no thing: it is written as its kind, a slash and its id`,
      "millwright restore list",
    );
  return { kind, id };
}

async function waiting(session: Session, filter: string | undefined): Promise<readonly Thing[]> {
  const client = await session.client(RestoreService);
  const work = await readPages(
    (pageToken) =>
      client.listParkedWork(
        {
          filter: ["status=waiting", ...(filter === undefined ? [] : [`(${filter})`])].join(" AND "),
          pageSize: 500,
          pageToken,
        },
        { signal: session.signal },
      ),
    (page) => page.work,
    undefined,
  );
  return work.map(({ kind, id }) => ({ kind, id }));
}

async function endIfNothingWaits(session: Session): Promise<number | undefined> {
  const client = await session.client(RestoreService);
  const { review } = await client.getRestoreReview({}, { signal: session.signal });
  if (review && review.parked > 0) {
    session.terminal.stderr.write(
      `${review.parked} things are still parked in ${review.id}: millwright restore review\n`,
    );
    return EXIT.operationFailed;
  }
  return endReview(session);
}

export async function endReview(session: Session): Promise<undefined> {
  const client = await session.client(RestoreService);
  const { review } = await client.endRestoreReview({}, { signal: session.signal });
  const id = review?.id ?? "";
  await printDone(
    session,
    id === "" ? "There is no restore review." : `Restore review ${id} has ended: devices take commands again.`,
    { id },
  );
}
