import {
  DeletedShelves,
  type PowerShelf,
  PowerShelfService,
} from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { byPlace } from "../../terminal/place-order.ts";
import { printList } from "../../terminal/printing.ts";
import { unlessGone, type WatchedKind, watchList } from "../device/watch.ts";
import { type ListOptions as AnyListOptions, joinFilters, limitOf, printTotal } from "../options/list-options.ts";
import { columnsFor, shelfJson } from "./view.ts";

export interface ListOptions extends AnyListOptions {
  readonly rack?: string;
  readonly state?: string;
  readonly powerState?: string;
  readonly stuck?: boolean;
  readonly failing?: boolean;
  readonly deleted: "exclude" | "only" | "include";
  readonly bmcMac?: string;
  readonly watch?: boolean;
}

const PAGE_SIZE = 500;
const DELETED = { exclude: "EXCLUDE", only: "ONLY", include: "INCLUDE" } as const;
const NONE = "No power shelves.";

export async function listPowerShelves(session: Session, options: ListOptions): Promise<number | undefined> {
  if (options.watch) return watchPowerShelves(session, options);
  const { items, total } = await readShelves(session, options);
  await printList(session, { items, columns: columnsFor(session.style()), json: shelfJson }, NONE);
  printTotal(session, items.length, total);
  return undefined;
}

/** A filter may say itself what becomes of shelves that are marked for deletion. */
const deletedOf = ({ deleted, filter }: ListOptions): DeletedShelves =>
  filter !== undefined && deleted === "exclude" ? DeletedShelves.UNSPECIFIED : DeletedShelves[DELETED[deleted]];

/** All matching shelves, page after page; by their place unless another order is asked for. */
async function readShelves(
  session: Session,
  options: ListOptions,
): Promise<{ readonly items: PowerShelf[]; readonly total: number | undefined }> {
  const client = await session.client(PowerShelfService);
  const limit = limitOf(options);
  let total: number | undefined;
  const query = {
    pageSize: Math.min(limit ?? PAGE_SIZE, PAGE_SIZE),
    filter: options.filter ?? "",
    orderBy: options.orderBy ?? "",
    rackId: options.rack ?? "",
    state: options.state ?? "",
    powerState: options.powerState ?? "",
    stuckOnly: options.stuck ?? false,
    failingOnly: options.failing ?? false,
    deleted: deletedOf(options),
    bmcMac: options.bmcMac ?? "",
  };
  const shelves = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await client.listPowerShelves({ ...query, pageToken, withTotal }, { signal: session.signal });
      total ??= page.totalSize;
      return page;
    },
    (page) => page.powerShelves,
    limit,
  );
  return { items: options.orderBy === undefined ? shelves.sort(byPlace) : shelves, total };
}

/** The shelf as it is now; undefined once it is gone. */
export async function readShelf(session: Session, id: string): Promise<PowerShelf | undefined> {
  const client = await session.client(PowerShelfService);
  return unlessGone(async () => (await client.getPowerShelf({ id }, { signal: session.signal })).powerShelf);
}

/** The server's filters again, for a shelf that was read by itself after a change. */
function matches(shelf: PowerShelf, options: ListOptions): boolean {
  const isDeleted = shelf.deletedAt !== undefined;
  return (
    (options.deleted === "include" || isDeleted === (options.deleted === "only")) &&
    (options.rack === undefined || shelf.rackId === options.rack) &&
    (options.state === undefined || shelf.state === options.state) &&
    (options.powerState === undefined || shelf.powerState === options.powerState) &&
    (!options.stuck || shelf.stuck) &&
    (!options.failing || shelf.failing) &&
    (options.bmcMac === undefined || sameMac(shelf.bmc?.mac ?? "", options.bmcMac))
  );
}

/** What a filter says, only the server can tell. */
async function isAdmitted(session: Session, shelf: PowerShelf, options: ListOptions): Promise<boolean> {
  if (options.filter === undefined) return matches(shelf, options);
  const filter = joinFilters(options.filter, `id=${shelf.id}`);
  return (await readShelves(session, { ...options, filter })).items.length > 0;
}

const sameMac = (left: string, right: string): boolean => bareMac(left) === bareMac(right);
const bareMac = (mac: string): string => mac.toLowerCase().replace(/[:.-]/g, "");

export const watchedShelves: WatchedKind<PowerShelf> = {
  kind: "power_shelf",
  idOf: ({ id }) => id,
  read: readShelf,
  listing: (style) => ({ columns: columnsFor(style), json: shelfJson }),
};

const watchPowerShelves = (session: Session, options: ListOptions): Promise<number> =>
  watchList(session, watchedShelves, {
    list: async () => (await readShelves(session, options)).items,
    async readListed(id) {
      const shelf = await readShelf(session, id);
      return shelf && (await isAdmitted(session, shelf, options)) ? shelf : undefined;
    },
    order: byPlace,
  });
