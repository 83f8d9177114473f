import { AppError, wrongField } from "../../kernel/errors.ts";
import { parseMachineId, parsePowerShelfId, parseSwitchId } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { ONLY_MAAS } from "../../lifecycles/machine/in-maas.ts";
import type { Activity, MaintenanceScope, Rack } from "../../lifecycles/rack/rack.ts";
import { describeInUse, isWholeRack } from "../../lifecycles/rack/scope.ts";

export interface StartRackMaintenance {
  readonly rackId: string;
  readonly scope: MaintenanceScope;
  /** Empty: all. */
  readonly activities: readonly Activity[];
  readonly reference?: string | undefined;
  /** Works on assigned trays, and on what they depend on, all the same. */
  readonly includeAssigned?: { readonly reason: string } | undefined;
}

/** Well-formed ids, each once. */
export function checkScope({ machine_ids, switch_ids, power_shelf_ids }: MaintenanceScope): MaintenanceScope {
  const each = (ids: readonly string[], field: string, parse: (text: string, field: string) => string) => [
    ...new Set(ids.map((id) => parse(id, field))),
  ];
  return {
    machine_ids: each(machine_ids, "scope.machine_ids", parseMachineId),
    switch_ids: each(switch_ids, "scope.switch_ids", parseSwitchId),
    power_shelf_ids: each(power_shelf_ids, "scope.power_shelf_ids", parsePowerShelfId),
  };
}

const LONGEST_VERSION = 256;

/** Each kind at most once. */
export function checkActivities(activities: readonly Activity[]): readonly Activity[] {
  const kinds = activities.map(({ kind }) => kind);
  const twice = kinds.find((kind, at) => kinds.indexOf(kind) !== at);
  if (twice !== undefined) throw wrongField("scope.activities", `${twice} is listed twice`);
  for (const activity of activities)
    if (activity.kind === "firmware_upgrade" && (activity.firmware_version ?? "").length > LONGEST_VERSION)
      throw wrongField("scope.activities.firmware_version", `at most ${LONGEST_VERSION} characters`);
  return activities;
}

const LONGEST_REASON = 1_024;

export function checkOverride(given: StartRackMaintenance["includeAssigned"]): { readonly reason: string } | undefined {
  if (given === undefined) return undefined;
  const reason = given.reason.trim();
  if (reason === "")
    throw wrongField("reason", "is required with include_assigned: say why assigned trays are worked on");
  if (reason.length > LONGEST_REASON || !isPrintable(reason))
    throw wrongField("reason", `must be printable, with at most ${LONGEST_REASON} characters`);
  return { reason };
}

/** Devices that do not belong to the rack, or are about to go. */
export function refuseForeign({ id, trays, switches, shelves }: Rack, scope: MaintenanceScope): void {
  const foreign = (ids: readonly string[], devices: readonly { readonly id: string }[]) =>
    ids.filter((each) => !devices.some((device) => device.id === each));
  const all = [
    ...foreign(scope.machine_ids, trays),
    ...foreign(scope.switch_ids, switches),
    ...foreign(scope.power_shelf_ids, shelves),
  ];
  if (all.length > 0)
    throw new AppError("invalid_argument", `scope: no devices of rack ${id}: ${all.join(", ")}`, {
      field: "scope",
      next: `millwright rack show ${id}`,
    });
}

/** A request that covers the whole rack goes on without them; one that names them would do nothing of what it says. */
export function refuseInMaas({ id, trays }: Rack, scope: MaintenanceScope): void {
  const named = trays.filter((tray) => tray.inMaas && scope.machine_ids.includes(tray.id)).map((tray) => tray.id);
  if (named.length > 0)
    throw new AppError("failed_precondition", `scope: of compute tray ${named.join(", ")} of rack ${id} ${ONLY_MAAS}`, {
      field: "scope",
      forgeCode: "failed_precondition",
      next: "millwright fleet list",
    });
}

/** While somebody uses a tray, neither the tray nor the switches and shelves of its rack are touched. */
export function refuseAssigned({ id, trays, switches, shelves }: Rack, scope: MaintenanceScope): void {
  const inUse = trays.filter(({ assigned }) => assigned !== "no");
  const whole = isWholeRack(scope);
  const covered = inUse.filter((tray) => !tray.inMaas && (whole || scope.machine_ids.includes(tray.id)));
  const shared = whole ? [...switches, ...shelves] : [...scope.switch_ids, ...scope.power_shelf_ids];
  const coversShared = shared.length > 0;
  const inTheWay = coversShared ? inUse : covered;
  if (inTheWay.length === 0) return;
  throw new AppError("failed_precondition", `rack ${id} has ${describeInUse(inTheWay)}`, {
    field: "scope",
    forgeCode: "failed_precondition",
    next: `millwright rack maintenance start --rack ${id} --include-assigned --reason …`,
  });
}

/** As it is kept on the rack. */
export const wishOf = (
  scope: MaintenanceScope,
  activities: readonly Activity[],
  more: { readonly [name: string]: JsonObject | string | undefined } = {},
): JsonObject => ({
  scope,
  activities,
  ...Object.fromEntries(
    Object.entries(more).filter((entry): entry is [string, JsonObject | string] => entry[1] !== undefined),
  ),
});
