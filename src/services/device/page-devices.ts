import { POWER_STATES } from "../../capabilities/power-control.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import { parseMac } from "../../kernel/ids.ts";
import type { Table } from "../../store/device/bmc-device-fields.ts";
import type { Listing } from "../../store/postgres/listing.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { checkWord, type DeletedChoice, deletedClauses } from "./standing.ts";

/** What callers ask of a list of devices of any kind, besides filter and order. */
export interface DeviceQuery extends ListRequest {
  readonly rackId: string | undefined;
  readonly state: string | undefined;
  readonly powerState: string | undefined;
  readonly stuckOnly: boolean;
  readonly failingOnly: boolean;
  readonly deleted: DeletedChoice;
  readonly bmcMac: string | undefined;
}

/** The fields that the lists of all devices have. */
type DeviceField = "rack_id" | "state" | "power_state" | "bmc_mac" | "stuck" | "failing" | "deleted" | "deleted_at";

interface Kind<F extends string, R> {
  readonly lifecycle: Table;
  readonly listing: Listing<F | DeviceField, R>;
}

/** One page of the devices of a kind, in the order of their ids unless told. `more` must hold besides. */
export async function pageDevices<F extends string, R>(
  deps: ServiceDeps,
  { lifecycle, listing }: Kind<F, R>,
  request: DeviceQuery,
  more: { readonly clauses: Filter<F | DeviceField>; readonly query: object } = { clauses: [], query: {} },
): Promise<ListPage<R>> {
  const { rackId, state, powerState, stuckOnly, failingOnly, deleted, bmcMac } = request;
  checkWord(state, Object.keys(lifecycle.states), "state");
  checkWord(powerState, POWER_STATES, "power_state");
  const clauses: Filter<F | DeviceField> = [
    ...is<DeviceField>("rack_id", rackId),
    ...is<DeviceField>("state", state),
    ...is<DeviceField>("power_state", powerState),
    ...is<DeviceField>("bmc_mac", bmcMac && parseMac(bmcMac, "bmc_mac")),
    ...is<DeviceField>("stuck", stuckOnly ? "true" : undefined),
    ...is<DeviceField>("failing", failingOnly ? "true" : undefined),
    ...more.clauses,
  ];
  return pageList(deps, listing, request, {
    clauses,
    query: { rackId, state, powerState, stuckOnly, failingOnly, deleted, bmcMac, ...more.query },
    completed: (filter) => [...deletedClauses(deleted, filter), ...filter],
    show: (device) => device,
  });
}
