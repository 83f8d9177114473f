import {
  type AttentionGroup,
  AttentionReason,
  type GetOverviewResponse,
  GetOverviewResponseSchema,
  type KindCounts,
  OverviewService,
} from "../../../../contract/millwright/v1/overview_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, OneThing, Style } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import { type Cell, tableOf } from "../../terminal/table.ts";
import { age } from "../../terminal/times.ts";
import { kindOf } from "../event/kind.ts";

export async function showTop(session: Session, words: readonly string[]): Promise<undefined> {
  const client = await session.client(OverviewService);
  const overview = await client.getOverview({ kinds: words.map(kindOf) }, { signal: session.signal });
  await printOne(session, topOf(overview, session.style()));
  if (overview.cut && session.style().format === "table")
    session.terminal.stderr.write("There is more that needs somebody than is shown.\n");
}

/** For csv, which has one line. */
const columns: readonly Column<GetOverviewResponse>[] = [
  { title: "NEEDS SOMEBODY", cell: ({ kinds }) => String(kinds.reduce((sum, { attention }) => sum + attention, 0n)) },
  { title: "THINGS", cell: ({ kinds }) => String(kinds.reduce((sum, { things }) => sum + things, 0n)) },
  { title: "WORKING", cell: ({ kinds }) => String(kinds.reduce((sum, { working }) => sum + working, 0n)) },
];

function topOf(overview: GetOverviewResponse, style: Style): OneThing<GetOverviewResponse> {
  const { attention, kinds } = overview;
  const present = kinds.filter(({ things }) => things > 0n);
  const working = present.reduce((sum, { working: some }) => sum + some, 0n);
  const needing = present.reduce((sum, { attention: some }) => sum + some, 0n);
  return {
    item: overview,
    columns,
    json: (item) => jsonOf(GetOverviewResponseSchema, item),
    details: [
      needing === 0n
        ? ["Needs you", `nothing; ${working} at work`, "good"]
        : ["Needs you", `${needing} in ${attention.length} groups; ${working} at work`, "bad"],
    ],
    sections: [
      ...(attention.length === 0 ? [] : [{ title: "What needs somebody", body: attentionTable(attention, style) }]),
      ...(present.length === 0 ? [] : [{ title: "Fleet", body: kindsTable(present, style) }]),
    ],
  };
}

const REASONS: Readonly<Partial<Record<AttentionReason, string>>> = {
  [AttentionReason.NEEDS_PERSON]: "needs a person",
  [AttentionReason.TROUBLE]: "trouble",
  [AttentionReason.ABOVE_SLA]: "above SLA",
};

const plain = (text: string): Cell => ({ text, tone: undefined });

/** One thing by its name, several by how many they are and where they can be seen. */
function attentionTable(groups: readonly AttentionGroup[], style: Style): string {
  const rows = groups.map(({ kind, things, ids, reason, state, since, rackId, cause, message }) => [
    {
      text: things === 1 ? `${kind} ${ids[0] ?? ""}` : `${things} ${kind}: ${ids.slice(0, 2).join(" ")} …`,
      tone: "bold" as const,
    },
    plain(state),
    { text: REASONS[reason] ?? "", tone: "bad" as const },
    plain(age(since, style.now)),
    plain(rackId),
    plain(message === "" ? cause : message),
  ]);
  return tableOf(["WHAT", "STATE", "WHY", "FOR", "RACK", "CAUSE"], rows, style);
}

function kindsTable(kinds: readonly KindCounts[], style: Style): string {
  const number = (value: bigint): string => (value === 0n ? "" : String(value));
  const rows = kinds.map(({ kind, things, attention, aboveSla, working, states }) => [
    plain(kind),
    plain(String(things)),
    { text: number(attention), tone: "bad" as const },
    { text: number(aboveSla), tone: "bad" as const },
    { text: number(working), tone: "busy" as const },
    plain(
      [...states]
        .sort((a, b) => Number(b.things - a.things))
        .map(({ state, things: some }) => `${state} ${some}`)
        .join(", "),
    ),
  ]);
  return tableOf(["KIND", "THINGS", "NEED SOMEBODY", "ABOVE SLA", "WORKING", "STATES"], rows, style);
}
