import { POWER_STATES } from "../../capabilities/power-control.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import { parseMac } from "../../kernel/ids.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { type PowerShelfField, powerShelfListing } from "../../store/power-shelf/power-shelf-list.ts";
import type { PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import {
  checkWord,
  type DeletedChoice,
  type DeviceStanding,
  deletedClauses,
  findStandings,
} from "../device/standing.ts";
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

export interface PowerShelfQuery extends ListRequest {
  readonly rackId: string | undefined;
  readonly state: string | undefined;
  readonly powerState: string | undefined;
  readonly stuckOnly: boolean;
  readonly failingOnly: boolean;
  readonly deleted: DeletedChoice;
  readonly bmcMac: string | undefined;
}

/** In the order of their ids unless told. */
export async function pagePowerShelves(deps: ServiceDeps, request: PowerShelfQuery): Promise<ListPage<PowerShelfView>> {
  const { rackId, state, powerState, stuckOnly, failingOnly, deleted, bmcMac } = request;
  checkWord(state, Object.keys(powerShelfLifecycle.states), "state");
  checkWord(powerState, POWER_STATES, "power_state");
  const clauses: Filter<PowerShelfField> = [
    ...is("rack_id", rackId),
    ...is("state", state),
    ...is("power_state", powerState),
    ...is("bmc_mac", bmcMac && parseMac(bmcMac, "bmc_mac")),
    ...is("stuck", stuckOnly ? "true" : undefined),
    ...is("failing", failingOnly ? "true" : undefined),
  ];
  const query = { rackId, state, powerState, stuckOnly, failingOnly, deleted, bmcMac };
  const page = await pageList(deps, powerShelfListing, request, {
    clauses,
    query,
    completed: (filter) => [...deletedClauses(deleted, filter), ...filter],
    show: (shelf) => shelf,
  });
  return { ...page, items: await viewPowerShelves(deps, page.items) };
}
