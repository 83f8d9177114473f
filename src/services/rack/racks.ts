import type { Filter } from "../../kernel/filter/filter.ts";
import { parseRackId } from "../../kernel/ids.ts";
import { type MergedHealth, mergeHealth } from "../../lifecycles/device/merged-health.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import { type Count, countMembers } from "../../lifecycles/rack/members.ts";
import type { ActivityKind } from "../../lifecycles/rack/rack.ts";
import { listHealthReports } from "../../store/device/health-reports.ts";
import { hasSla, isStuckRack, type RackField, rackListing, urgencyOf } from "../../store/rack/rack-list.ts";
import { findLiveRackIds, listRacks, type RackRecord } from "../../store/rack/racks.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { checkIdList } from "../call/id-list.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { unknownDevice } from "../device/device.ts";
import { checkWord, type DeviceStanding, passesOf } from "../device/standing.ts";

export type { Count } from "../../lifecycles/rack/members.ts";
export type { RackPhase } from "../../lifecycles/rack/rack.ts";
export type { RackRecord } from "../../store/rack/racks.ts";
export type RackState = keyof typeof rackLifecycle.states;
export type RackActivity = ActivityKind | "completed";

const KIND = rackLifecycle.kind;

/** A rack and all there is to say about where it stands. */
export interface RackView
  extends Pick<DeviceStanding, "lastPass" | "condition" | "failingSince" | "reason" | "sla" | "aboveSla" | "stuck"> {
  readonly rack: RackRecord;
  /** Which racks somebody should look at first: the higher, the sooner. */
  readonly urgency: number;
  readonly counts: readonly Count[];
  readonly health: MergedHealth;
}

export async function viewRacks(deps: ServiceDeps, racks: readonly RackRecord[]): Promise<RackView[]> {
  const reports = await listHealthReports(
    deps.db,
    KIND,
    racks.map(({ id }) => id),
  );
  const now = nowOf(deps);
  return racks.map((rack) => ({
    rack,
    ...passesOf(rackLifecycle, rack, now),
    ...(!hasSla(rack) && { sla: null, aboveSla: false }),
    stuck: isStuckRack(rack, now),
    urgency: urgencyOf(rack, now),
    counts: countMembers(rack),
    health: mergeHealth(reports.get(rack.id) ?? []),
  }));
}

export async function getRack(deps: ServiceDeps, id: string, field = "id"): Promise<RackRecord> {
  const [rack] = await listRacks(deps.db, { ids: [parseRackId(id, field)] });
  if (!rack) throw unknownDevice({ noun: "rack", command: "rack" }, id);
  return rack;
}

/** Without an id: all. */
export const findRacks = (deps: ServiceDeps, id: string | undefined): Promise<RackRecord[]> =>
  listRacks(deps.db, id === undefined ? {} : { ids: [parseRackId(id, "id")] });

export async function findRacksByIds(deps: ServiceDeps, given: readonly string[]): Promise<RackRecord[]> {
  const ids = checkIdList(given, { field: "rack_ids", most: deps.maxFindByIds, parse: parseRackId });
  return listRacks(deps.db, { ids });
}

/** With a value: racks whose label has it; without: racks that have a label of this key. */
export const searchRackIds = (
  deps: ServiceDeps,
  label: { readonly key: string; readonly value: string | undefined } | undefined,
): Promise<string[]> => findLiveRackIds(deps.db, label);

export interface RackQuery extends ListRequest {
  readonly state: string | undefined;
  readonly stuckOnly: boolean;
  readonly failingOnly: boolean;
}

/** In the order of their ids unless told. */
export async function pageRacks(deps: ServiceDeps, request: RackQuery): Promise<ListPage<RackView>> {
  const { state, stuckOnly, failingOnly } = request;
  checkWord(state, Object.keys(rackLifecycle.states), "state");
  const clauses: Filter<RackField> = [
    ...is("state", state),
    ...is("stuck", stuckOnly ? "true" : undefined),
    ...is("failing", failingOnly ? "true" : undefined),
  ];
  const page = await pageList(deps, rackListing, request, {
    clauses,
    query: { state, stuckOnly, failingOnly },
    show: (rack) => rack,
  });
  return { ...page, items: await viewRacks(deps, page.items) };
}
