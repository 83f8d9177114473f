import {
  Forge,
  type LinkedExpectedPowerShelf,
  LinkedExpectedPowerShelfSchema,
} from "../../../../contract/forge/forge_pb.js";
import {
  type ExpectedPowerShelf,
  ExpectedPowerShelfSchema,
  ExploreState,
  ExploreStateSchema,
  PowerShelfService,
} from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { CliError, EXIT, UsageError } from "../../client/errors.ts";
import { enumNumber, enumWord, enumWords, jsonOf } from "../../client/proto-json.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { byPlace } from "../../terminal/place-order.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";
import { age, clockTime } from "../../terminal/times.ts";
import { type ListOptions, limitOf, printTotal } from "../options/list-options.ts";
import { nameEntry } from "./expected-entry.ts";

export interface ExpectedListOptions extends ListOptions {
  readonly rack?: string;
  readonly exploreState?: string;
  readonly bmcMac?: string;
  readonly powerShelf?: string;
}

const exploreText = (expected: ExpectedPowerShelf): string => enumWord(ExploreStateSchema, expected.exploreState);

function toneOf({ exploreState }: ExpectedPowerShelf): Tone {
  if (exploreState === ExploreState.LINKED) return "good";
  return exploreState === ExploreState.PENDING || exploreState === ExploreState.DETACHED ? "dim" : "bad";
}

const columns: readonly Column<ExpectedPowerShelf>[] = [
  { title: "BMC MAC", cell: (expected) => expected.bmcMac },
  { title: "ENDPOINT", cell: (expected) => expected.bmcEndpoint },
  { title: "SERIAL", cell: (expected) => expected.serial },
  { title: "RACK", cell: (expected) => expected.rackId },
  { title: "NAME", cell: (expected) => expected.name },
  { title: "EXPLORED", cell: exploreText, tone: toneOf },
  { title: "POWER SHELF", cell: (expected) => expected.powerShelfId },
  { title: "MESSAGE", cell: (expected) => expected.exploreMessage },
];
const expectedJson = (expected: ExpectedPowerShelf) => jsonOf(ExpectedPowerShelfSchema, expected);
const NONE = "No expected power shelves.";

const PAGE_SIZE = 500;

/** By their place unless another order is asked for. */
async function readExpected(
  session: Session,
  options: ExpectedListOptions,
): Promise<{ readonly items: ExpectedPowerShelf[]; readonly total: number | undefined }> {
  const client = await session.client(PowerShelfService);
  const exploreState = options.exploreState === undefined ? 0 : enumNumber(ExploreStateSchema, options.exploreState);
  if (exploreState === undefined) {
    throw new UsageError(
      `--explore-state: ${JSON.stringify(options.exploreState)} is none of ${enumWords(ExploreStateSchema).join(", ")}`,
    );
  }
  const limit = limitOf(options);
  let total: number | undefined;
  const query = {
    pageSize: Math.min(limit ?? PAGE_SIZE, PAGE_SIZE),
    filter: options.filter ?? "",
    orderBy: options.orderBy ?? "",
    rackId: options.rack ?? "",
    exploreState,
    bmcMac: options.bmcMac ?? "",
    powerShelfId: options.powerShelf ?? "",
  };
  const all = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await client.listExpectedPowerShelves(
        { ...query, pageToken, withTotal },
        { signal: session.signal },
      );
      total ??= page.totalSize;
      return page;
    },
    ({ expectedPowerShelves }) => expectedPowerShelves,
    limit,
  );
  return { items: options.orderBy === undefined ? all.sort(byPlace) : all, total };
}

export async function listExpected(session: Session, options: ExpectedListOptions): Promise<undefined> {
  const { items, total } = await readExpected(session, options);
  await printList(session, { items, columns, json: expectedJson }, NONE);
  printTotal(session, items.length, total);
}

/** One entry by MAC address or id, with how finding it goes; without either, all of them. */
export async function showExpected(session: Session, macOrId: string | undefined): Promise<undefined> {
  if (macOrId === undefined) return listExpected(session, {});
  const { items } = await readExpected(session, { bmcMac: await macOf(session, macOrId) });
  const [found] = items;
  if (!found) {
    throw new CliError(
      EXIT.notFound,
      `there is no expected power shelf ${macOrId}`,
      "give its BMC MAC address or id; `millwright expected-power-shelf list` shows them",
    );
  }
  const { now } = session.style();
  await printOne(session, {
    item: found,
    columns,
    json: expectedJson,
    details: [
      ["Expected power shelf", found.id, "bold"],
      ["BMC MAC", found.bmcMac],
      [
        "BMC",
        `${found.bmcEndpoint}, user ${found.bmcUsername}${found.retainCredentials ? ", credentials retained" : ""}`,
      ],
      ["Serial", found.serial],
      ["Rack", found.rackId || "none"],
      ["Name", found.name],
      ["Description", found.description],
      [
        "Labels",
        Object.entries(found.labels)
          .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
          .join(", "),
      ],
      [
        "Explored",
        `${exploreText(found)}${found.exploredAt ? ` (${clockTime(found.exploredAt)}, ${age(found.exploredAt, now)} ago)` : ""}`,
        toneOf(found),
      ],
      ["Message", found.exploreMessage],
      ["Next attempt", clockTime(found.nextExploreAt)],
      ["Power shelf", found.powerShelfId || (found.exploreState === ExploreState.DETACHED ? "deleted" : "none yet")],
      ["Meaning", meaningOf(found)],
    ],
  });
}

/** What a state means where its word alone leaves one at a loss, and the way out. */
function meaningOf({ exploreState, bmcMac, serial }: ExpectedPowerShelf): string {
  if (exploreState !== ExploreState.DETACHED) return "";
  return (
    "its power shelf was deleted, so it is not looked for any more. " +
    `\`millwright expected-power-shelf update ${bmcMac} --serial ${serial}\` brings it back; ` +
    `\`millwright expected-power-shelf delete ${bmcMac}\` forgets it`
  );
}

/** The list knows entries by MAC address; who gives an id has it looked up. */
async function macOf(session: Session, macOrId: string): Promise<string> {
  const key = nameEntry(macOrId);
  if ("bmcMacAddress" in key) return key.bmcMacAddress;
  const forge = await session.client(Forge);
  return (await forge.getExpectedPowerShelf(key, { signal: session.signal })).bmcMacAddress;
}

const linkedColumns: readonly Column<LinkedExpectedPowerShelf>[] = [
  { title: "BMC MAC", cell: (linked) => linked.bmcMacAddress },
  { title: "SERIAL", cell: (linked) => linked.shelfSerialNumber },
  { title: "RACK", cell: (linked) => linked.rackId?.id ?? "" },
  { title: "ANSWERED AT", cell: (linked) => linked.exploredEndpointAddress ?? "" },
  { title: "POWER SHELF", cell: (linked) => linked.powerShelfId?.id ?? "" },
];

export async function listLinked(session: Session): Promise<undefined> {
  const forge = await session.client(Forge);
  const { expectedPowerShelves } = await forge.getAllExpectedPowerShelvesLinked({}, { signal: session.signal });
  await printList(
    session,
    {
      items: expectedPowerShelves,
      columns: linkedColumns,
      json: (linked) => jsonOf(LinkedExpectedPowerShelfSchema, linked),
    },
    NONE,
  );
}
