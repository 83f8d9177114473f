import {
  type ParkedWork,
  ParkedWorkSchema,
  type RestoreReview,
  RestoreReviewSchema,
  RestoreService,
} from "../../../../contract/millwright/v1/restore_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

const reviewColumns: readonly Column<RestoreReview>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "STATE", cell: ({ state }) => state },
  { title: "AS OF", cell: ({ asOf }) => clockTime(asOf), plain: ({ asOf }) => isoTime(asOf) },
  { title: "PARKED", cell: ({ parked }) => String(parked) },
];

const workColumns: readonly Column<ParkedWork>[] = [
  { title: "THING", cell: ({ kind, id }) => `${kind}/${id}` },
  { title: "STATUS", cell: ({ status }) => status },
  { title: "WAS DOING", cell: ({ doing }) => doing },
  { title: "DECIDED BY", cell: ({ settledBy }) => settledBy },
];

const NEXT = `What to do with each:
  millwright restore adopt THING     a run looks at what is true now, acts on nothing, and ends by that
  millwright restore resume THING    it goes on from where the backup believes it is; its machine is asked first
  millwright restore abandon THING   it ends, and no device is touched
  millwright restore resume --all    for a backup that has lost nothing: everything goes on, and the review ends
`;

/** All that somebody needs to decide: why, since when, what waits, and what comes next. */
export async function showReview(session: Session): Promise<undefined> {
  const client = await session.client(RestoreService);
  const { review } = await client.getRestoreReview({}, { signal: session.signal });
  if (!review) throw new CliError(EXIT.operationFailed, "the server answered without a review");
  const tokens = review.returnedTokens.map(({ id, name }) => `${name} (millwright token revoke ${id})`);
  await printOne(session, {
    item: review,
    columns: reviewColumns,
    json: (item) => jsonOf(RestoreReviewSchema, item),
    details: [
      ["Review", review.id],
      ["State", review.state, review.state === "ended" ? undefined : "bad"],
      ["Noticed", `${clockTime(review.createdAt)} by replica ${review.foundBy}`],
      ["Because", review.findings.map(({ message }) => message).join("; ")],
      ["Backup ends", review.asOf ? clockTime(review.asOf) : "with nothing"],
      ["Parked", String(review.parked)],
      [
        "Tokens back",
        tokens.length === 0 ? "none that a replica remembers" : tokens.join(", "),
        tokens.length === 0 ? undefined : "bad",
      ],
    ],
  });
  if (session.style().format !== "table" || review.state === "ended") return;
  const { work } = await client.listParkedWork({ filter: "status=waiting", pageSize: 50 }, { signal: session.signal });
  if (work.length > 0) {
    session.terminal.stdout.write("\n");
    await printList(session, { items: work, columns: workColumns, json: (item) => jsonOf(ParkedWorkSchema, item) }, "");
    if (review.parked > work.length)
      session.terminal.stdout.write(`… and ${review.parked - work.length} more: millwright restore list\n`);
  }
  session.terminal.stdout.write(
    work.length > 0 ? `\n${NEXT}` : "\nNothing is parked. millwright restore end has devices take commands again.\n",
  );
}

export async function listParked(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(RestoreService);
  const items = await readList(
    session,
    options,
    (query) => client.listParkedWork(query, { signal: session.signal }),
    ({ work }) => work,
  );
  await printList(
    session,
    { items, columns: workColumns, json: (item) => jsonOf(ParkedWorkSchema, item) },
    "Nothing was parked.",
  );
}
