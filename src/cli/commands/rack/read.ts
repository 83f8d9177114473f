import { type Rack, type RackRequest, RackSchema, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import type { Column, Detail, Section, Style } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";
import { type ListOptions, limitOf, printTotal } from "../options/list-options.ts";

export interface ListRacksOptions extends ListOptions {
  readonly state?: string;
  readonly stuck?: boolean;
}

const PAGE_SIZE = 200;

export async function listRacks(session: Session, options: ListRacksOptions): Promise<undefined> {
  const client = await session.client(RackService);
  const limit = limitOf(options);
  let total: number | undefined;
  const query = {
    pageSize: Math.min(limit ?? PAGE_SIZE, PAGE_SIZE),
    filter: options.filter ?? "",
    orderBy: options.orderBy ?? "",
    state: options.state ?? "",
    stuckOnly: options.stuck ?? false,
  };
  const items = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await client.listRacks({ ...query, pageToken, withTotal }, { signal: session.signal });
      total ??= page.totalSize;
      return page;
    },
    ({ racks }) => racks,
    limit,
  );
  await printList(session, { items, columns, json: rackJson }, "No racks.");
  printTotal(session, items.length, total);
}

export async function showRack(session: Session, id: string | undefined): Promise<undefined> {
  if (id === undefined) return listRacks(session, {});
  const client = await session.client(RackService);
  const { rack } = await client.getRack({ id }, { signal: session.signal });
  if (!rack) throw new Error(`the server answered without the rack ${id}`);
  const style = session.style();
  await printOne(session, {
    item: rack,
    columns,
    json: rackJson,
    details: detailsOf(rack, style.now),
    sections: sectionsOf(rack, style),
  });
}

const rackJson = (rack: Rack) => jsonOf(RackSchema, rack);

const TONES: { readonly [state: string]: Tone } = {
  ready: "good",
  error: "bad",
  maintenance: "busy",
  validating: "busy",
  discovering: "busy",
  created: "dim",
  deleting: "dim",
};
const toneOf = ({ state, stuck }: Rack): Tone | undefined => (stuck ? "bad" : TONES[state]);

/** Such as 17/18: ready of those that are expected, or that are there where nobody has said how many. */
const readyOf = (rack: Rack, kind: string): string => {
  const count = rack.counts.find((each) => each.kind === kind);
  return count === undefined ? "" : `${count.ready}/${Math.max(count.expected, count.have)}`;
};

/** What it waits for, or why it is in error. */
const whyOf = ({ error, reason }: Rack): string => error || reason;

const columns: readonly Column<Rack>[] = [
  { title: "ID", cell: ({ id }) => id },
  {
    title: "STATE",
    cell: ({ stateText, state }) => (state === "error" ? "Error" : stateText),
    plain: ({ state }) => state,
    tone: toneOf,
  },
  { title: "FOR", cell: ({ stateSince }, now) => age(stateSince, now), plain: ({ stateSince }) => isoTime(stateSince) },
  { title: "PROFILE", cell: ({ profile }) => profile || "-", minor: true },
  { title: "TRAYS", cell: (rack) => readyOf(rack, "compute tray") },
  { title: "SWITCHES", cell: (rack) => readyOf(rack, "switch") },
  { title: "SHELVES", cell: (rack) => readyOf(rack, "power shelf") },
  { title: "WHY", cell: whyOf },
];

const PLURALS: { readonly [kind: string]: string } = {
  "compute tray": "Compute trays",
  switch: "Switches",
  "power shelf": "Power shelves",
};

const detailsOf = (rack: Rack, now: Date): Detail[] => [
  ["Rack", rack.id],
  ["Name", rack.name === rack.id ? "" : rack.name],
  ["Description", rack.description],
  [
    "Labels",
    Object.entries(rack.labels)
      .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
      .join(" "),
  ],
  ["State", `${rack.stateText} for ${age(rack.stateSince, now)}`, toneOf(rack)],
  ["Why", rack.error === "" ? rack.reason : ""],
  ["Profile", profileText(rack)],
  ...rack.counts.map(
    ({ kind, have, ready, expected }): Detail => [
      PLURALS[kind] ?? kind,
      // Without a profile nothing is expected, and "18 of 0" would say nothing.
      expected === 0 ? `${have}, ${ready} ready` : `${have} of ${expected} expected, ${ready} ready`,
      ready < expected ? "bad" : undefined,
    ],
  ),
  ["Firmware", rack.firmware],
  ["Run", rack.runId],
  ["Created", clockTime(rack.createdAt)],
  ["Marked for deletion", rack.deletedAt === undefined ? "" : clockTime(rack.deletedAt)],
];

const profileText = ({ profile, profileExists }: Rack): string =>
  profile === ""
    ? "none: `millwright site apply` assigns one"
    : profileExists
      ? profile
      : `${profile}, which does not exist: \`millwright site apply\` adds it`;

function sectionsOf(rack: Rack, style: Style): Section[] {
  const plain = (...texts: string[]) => texts.map((text) => ({ text, tone: undefined }));
  const section = (title: string, heads: readonly string[], rows: readonly (readonly string[])[]): Section[] =>
    rows.length === 0
      ? []
      : [
          {
            title,
            body: tableOf(
              heads,
              rows.map((row) => plain(...row)),
              style,
            ),
          },
        ];
  return [
    ...section(
      "Not ready",
      ["KIND", "DEVICE"],
      rack.counts.flatMap(({ kind, notReady }) => notReady.map((device) => [kind, device])),
    ),
    ...section(
      "Devices",
      ["KIND", "ID", "STATE", "SLOT", "ASSIGNED", "UNPROVEN RUN"],
      rack.members.map(({ kind, id, state, slot, assigned, unprovenRun }) => [
        kind,
        id,
        state,
        slot,
        assigned,
        unprovenRun,
      ]),
    ),
    ...section(
      "Left out",
      ["DEVICE", "WHY"],
      rack.leftOut.map(({ id, why }) => [id, why]),
    ),
    ...section(
      "Requests",
      ["KIND", "BY", "REQUESTED", "OUTCOME", "MESSAGE"],
      [...rack.pendingRequests, ...rack.lastRequests].map(requestRow),
    ),
  ];
}

const requestRow = ({ kind, initiator, requestedAt, outcome, message }: RackRequest): string[] => [
  kind,
  initiator,
  clockTime(requestedAt),
  outcome || "pending",
  message,
];
