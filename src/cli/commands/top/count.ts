import { OverviewService, type ThingGroup, ThingGroupSchema } from "../../../../contract/millwright/v1/overview_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { age, describeDuration, isoTime, toMilliseconds } from "../../terminal/times.ts";
import { kindOf } from "../event/kind.ts";

export interface CountOptions {
  readonly by?: readonly string[];
  readonly filter?: string;
  readonly limit: number;
}

const duration = (value: ThingGroup["dwellP50"]): string =>
  value === undefined ? "" : describeDuration(toMilliseconds(value));
const number = (value: bigint): string => (value === 0n ? "" : String(value));

const NUMBERS: readonly Column<ThingGroup>[] = [
  { title: "THINGS", cell: ({ things }) => String(things) },
  { title: "TROUBLE", cell: ({ inTrouble }) => number(inTrouble), tone: () => "bad" },
  { title: "ABOVE SLA", cell: ({ aboveSla }) => number(aboveSla), tone: () => "bad" },
  {
    title: "LONGEST",
    cell: ({ oldestSince }, now) => age(oldestSince, now),
    plain: ({ oldestSince }) => isoTime(oldestSince),
  },
  { title: "P50", cell: ({ dwellP50 }) => duration(dwellP50) },
  { title: "P95", cell: ({ dwellP95 }) => duration(dwellP95) },
];

export async function countKind(session: Session, word: string, options: CountOptions): Promise<undefined> {
  const { by = [], filter = "", limit } = options;
  const client = await session.client(OverviewService);
  const { groups, total, cut } = await client.countThings(
    { kind: kindOf(word), filter, groupBy: [...by], maxGroups: limit },
    { signal: session.signal },
  );
  const columns = [
    ...by.map(
      (field, at): Column<ThingGroup> => ({
        title: field.toUpperCase(),
        cell: ({ values }) => (values[at] === "" ? "(none)" : (values[at] ?? "")),
        plain: ({ values }) => values[at] ?? "",
      }),
    ),
    ...NUMBERS,
  ];
  await printList(
    session,
    { items: groups, columns, json: (group) => jsonOf(ThingGroupSchema, group) },
    "No such things.",
  );
  if (session.style().format !== "table" || groups.length < 2) return;
  const more = cut ? `; ${groups.length} groups are shown, --limit ${limit * 10} shows more` : "";
  session.terminal.stderr.write(`${total} in all${more}.\n`);
}
