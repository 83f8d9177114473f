import {
  type ClaimLink,
  type ExplainResponse,
  ExplainResponseSchema,
  ExplainService,
} from "../../../../contract/millwright/v1/explain_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, Detail, OneThing, Section, Style } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";
import { kindOf } from "../event/kind.ts";
import { resolveNode } from "../fleet/names.ts";
import { resolveShelf } from "../power-shelf/names.ts";

/** Kinds whose things are known by name as well. */
const NAMED: Readonly<Record<string, (session: Session, word: string) => Promise<string>>> = {
  power_shelf: resolveShelf,
  fleet_node: resolveNode,
};

export async function showExplanation(session: Session, word: string, idOrName: string): Promise<undefined> {
  const kind = kindOf(word);
  const resolve = NAMED[kind];
  const id = resolve ? await resolve(session, idOrName) : idOrName;
  const client = await session.client(ExplainService);
  const explanation = await client.explain({ kind, id }, { signal: session.signal });
  await printOne(session, explanationThing(explanation, session.style()));
}

const columns: readonly Column<ExplainResponse>[] = [
  { title: "HEADLINE", cell: ({ headline }) => headline },
  { title: "DOING", cell: ({ doing }) => doing },
  { title: "WAITING FOR", cell: ({ waitingFor }) => waitingFor.join("; ") },
  { title: "SINCE", cell: ({ since }) => isoTime(since) },
  { title: "LAST FAILURE", cell: ({ lastFailure }) => lastFailure?.message ?? "" },
  { title: "NEXT COMMAND", cell: ({ nextCommands }) => nextCommands[0]?.command ?? "" },
];

function failureText({ lastFailure }: ExplainResponse, now: Date): string {
  if (!lastFailure) return "";
  const { runId, step, attempt, at, message } = lastFailure;
  const where = [runId && `run ${runId}`, step && `step ${step}`, `attempt ${attempt}`].filter(Boolean).join(", ");
  return `${message} (${where}${at ? `, ${age(at, now)} ago` : ""})`;
}

const claimText = ({ thingKind, thingId, claim, reason }: ClaimLink, now: Date): string =>
  `${claim?.holderKind ?? ""} ${claim?.holderId ?? ""} ${reason}: ${thingKind} ${thingId}${claim?.since ? `, for ${age(claim.since, now)}` : ""}`;

function explanationThing(explanation: ExplainResponse, style: Style): OneThing<ExplainResponse> {
  const { headline, doing, waitingFor, since, claims, nextCommands } = explanation;
  const { now } = style;
  const details: Detail[] = [
    ["Why", headline, "bold"],
    ["Since", since ? `${clockTime(since)}, ${age(since, now)} ago` : ""],
    ["Doing", doing],
    ...waitingFor.map((text, at): Detail => [at === 0 ? "Waits for" : "then", text, "busy"]),
    ...claims.map((link, at): Detail => [at === 0 ? "In the way" : "behind it", claimText(link, now), "busy"]),
    ["Last failure", failureText(explanation, now), "bad"],
  ];
  const rows = nextCommands.map(({ command, why }) => [
    { text: command, tone: "bold" as const },
    { text: why, tone: undefined },
  ]);
  const sections: Section[] =
    rows.length === 0 ? [] : [{ title: "What helps", body: tableOf(["COMMAND", "WHAT IT DOES"], rows, style) }];
  return { item: explanation, columns, json: (item) => jsonOf(ExplainResponseSchema, item), details, sections };
}
