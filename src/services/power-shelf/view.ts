import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { powerShelfListing } from "../../store/power-shelf/power-shelf-list.ts";
import type { PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { ListPage } from "../call/listing.ts";
import { type DeviceQuery, pageDevices } from "../device/page-devices.ts";
import { type DeviceStanding, findStandings } from "../device/standing.ts";
import { getPowerShelf } from "./power-shelves.ts";

export type { PowerShelfState } from "../../lifecycles/power-shelf/lifecycle.ts";
export type { PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";

/** A shelf and all there is to say about where it stands. */
export interface PowerShelfView extends DeviceStanding {
  readonly shelf: PowerShelfRecord;
}

export async function viewPowerShelves(
  deps: ServiceDeps,
  shelves: readonly PowerShelfRecord[],
): Promise<PowerShelfView[]> {
  const standings = await findStandings(deps, powerShelfLifecycle, shelves);
  return standings.map((standing, at) => ({ ...standing, shelf: shelves[at] as PowerShelfRecord }));
}

export async function viewPowerShelf(deps: ServiceDeps, id: string): Promise<PowerShelfView> {
  const [view] = await viewPowerShelves(deps, [await getPowerShelf(deps, id)]);
  if (!view) throw new Error("a shelf has no view");
  return view;
}

export type PowerShelfQuery = DeviceQuery;

/** In the order of their ids unless told. */
export async function pagePowerShelves(deps: ServiceDeps, request: PowerShelfQuery): Promise<ListPage<PowerShelfView>> {
  const page = await pageDevices(deps, { lifecycle: powerShelfLifecycle, listing: powerShelfListing }, request);
  return { ...page, items: await viewPowerShelves(deps, page.items) };
}
