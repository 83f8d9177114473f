import { DeletedSwitches, type Switch, SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { byPlace } from "../../terminal/place-order.ts";
import { printList } from "../../terminal/printing.ts";
import { unlessGone, type WatchedKind, watchList } from "../device/watch.ts";
import { type ListOptions as AnyListOptions, joinFilters, limitOf, printTotal } from "../options/list-options.ts";
import { columnsFor, switchJson } from "./view.ts";

export interface ListSwitchesOptions extends AnyListOptions {
  readonly rack?: string;
  readonly state?: string;
  readonly powerState?: string;
  readonly stuck?: boolean;
  readonly failing?: boolean;
  readonly deleted: "exclude" | "only" | "include";
  readonly bmcMac?: string;
  readonly nvosMac?: string;
  readonly watch?: boolean;
}

const PAGE_SIZE = 500;
const DELETED = { exclude: "EXCLUDE", only: "ONLY", include: "INCLUDE" } as const;

export async function listSwitches(session: Session, options: ListSwitchesOptions): Promise<number | undefined> {
  if (options.watch) return watchSwitches(session, options);
  const { items, total } = await readSwitches(session, options);
  const none = options.failing || options.stuck ? "No switch is in trouble." : "No switches.";
  await printList(session, { items, columns: columnsFor(session.style()), json: switchJson }, none);
  printTotal(session, items.length, total);
  return undefined;
}

/** A filter may say itself what becomes of switches that are marked for deletion. */
const deletedOf = ({ deleted, filter }: ListSwitchesOptions): DeletedSwitches =>
  filter !== undefined && deleted === "exclude" ? DeletedSwitches.UNSPECIFIED : DeletedSwitches[DELETED[deleted]];

/** All matching switches, page after page; by their place unless another order is asked for. */
async function readSwitches(
  session: Session,
  options: ListSwitchesOptions,
): Promise<{ readonly items: Switch[]; readonly total: number | undefined }> {
  const client = await session.client(SwitchService);
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
    nvosMac: options.nvosMac ?? "",
  };
  const items = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await client.listSwitches({ ...query, pageToken, withTotal }, { signal: session.signal });
      total ??= page.totalSize;
      return page;
    },
    (page) => page.switches,
    limit,
  );
  return { items: options.orderBy === undefined ? items.sort(byTray) : items, total };
}

/** As one walks past them: by rack, then from the lowest tray. */
const byTray = (left: Switch, right: Switch): number =>
  byPlace({ ...left, name: "", id: "" }, { ...right, name: "", id: "" }) ||
  (left.trayIndex ?? 0) - (right.trayIndex ?? 0) ||
  byPlace(left, right);

export const watchedSwitches: WatchedKind<Switch> = {
  kind: "switch",
  idOf: ({ id }) => id,
  async read(session, id) {
    const client = await session.client(SwitchService);
    return unlessGone(async () => (await client.getSwitch({ id }, { signal: session.signal })).switch);
  },
  listing: (style) => ({ columns: columnsFor(style), json: switchJson }),
};

const watchSwitches = (session: Session, options: ListSwitchesOptions): Promise<number> =>
  watchList(session, watchedSwitches, {
    list: async () => (await readSwitches(session, options)).items,
    // Only the server can tell what a filter says.
    readListed: async (id) =>
      (await readSwitches(session, { ...options, filter: joinFilters(options.filter, `id=${id}`) })).items[0],
    order: byTray,
  });
