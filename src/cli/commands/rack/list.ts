import { type Rack, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { unlessGone, type WatchedKind, watchList, watchOne } from "../device/watch.ts";
import { joinFilters, type ListOptions, limitOf, printTotal } from "../options/list-options.ts";
import { rackColumns, rackJson, rackThing } from "./view.ts";

export interface ListRacksOptions extends ListOptions {
  readonly state?: string;
  readonly stuck?: boolean;
  readonly failing?: boolean;
  readonly watch?: boolean;
}

const PAGE_SIZE = 200;
/** What needs somebody stands first. */
const BY_URGENCY = "urgency desc, id";

export async function listRacks(session: Session, options: ListRacksOptions): Promise<number | undefined> {
  if (options.watch) return watchRacks(session, options);
  const { items, total } = await readRacks(session, options);
  const none = options.failing || options.stuck ? "No rack is in trouble." : "No racks.";
  await printList(session, { items, columns: rackColumns, json: rackJson }, none);
  printTotal(session, items.length, total);
  return undefined;
}

/** All matching racks, page after page. */
export async function readRacks(
  session: Session,
  options: Omit<ListRacksOptions, "watch">,
): Promise<{ readonly items: Rack[]; readonly total: number | undefined }> {
  const client = await session.client(RackService);
  const limit = limitOf(options);
  let total: number | undefined;
  const query = {
    pageSize: Math.min(limit ?? PAGE_SIZE, PAGE_SIZE),
    filter: options.filter ?? "",
    orderBy: options.orderBy ?? BY_URGENCY,
    state: options.state ?? "",
    stuckOnly: options.stuck ?? false,
    failingOnly: options.failing ?? false,
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
  return { items: options.orderBy === undefined ? items.sort(byUrgency) : items, total };
}

/** As the server sorts them, with rack-2 before rack-10. */
const byUrgency = (left: Rack, right: Rack): number =>
  right.urgency - left.urgency || left.id.localeCompare(right.id, "en", { numeric: true });

const watchedRacks: WatchedKind<Rack> = {
  kind: "rack",
  idOf: ({ id }) => id,
  async read(session, id) {
    const client = await session.client(RackService);
    return unlessGone(async () => (await client.getRack({ id }, { signal: session.signal })).rack);
  },
  listing: () => ({ columns: rackColumns, json: rackJson }),
};

/** How many devices are ready is a part of each row. */
const PARTS = ["host_reprovision", "switch", "power_shelf"];

const watchRacks = (session: Session, options: ListRacksOptions): Promise<number> =>
  watchList(session, watchedRacks, {
    list: async () => (await readRacks(session, options)).items,
    readListed: async (id) =>
      (await readRacks(session, { ...options, filter: joinFilters(options.filter, `id=${id}`) })).items[0],
    order: byUrgency,
    parts: PARTS,
  });

export async function showRack(
  session: Session,
  id: string | undefined,
  options: { readonly watch?: boolean },
): Promise<number | undefined> {
  if (id === undefined) return listRacks(session, options);
  const client = await session.client(RackService);
  const { rack } = await client.getRack({ id }, { signal: session.signal });
  if (!rack) throw new Error(`the server answered without the rack ${id}`);
  if (options.watch)
    return watchOne(session, watchedRacks, {
      id: rack.id,
      thing: rackThing,
      parts: { kinds: [...PARTS, "machine"], idsOf: ({ members }) => members.map((member) => member.id).sort() },
    });
  await printOne(session, rackThing(rack, session.style()));
  return undefined;
}
