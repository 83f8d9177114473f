import { randomUUID } from "node:crypto";
import { AppError, wrongField } from "../../kernel/errors.ts";
import { ONLY_MAAS } from "../../lifecycles/machine/in-maas.ts";
import type { Activity, MaintenanceScope } from "../../lifecycles/rack/rack.ts";
import type { ComponentKind, PlacedDevice } from "../../store/component/devices.ts";
import { findPlacedDevices } from "../../store/component/devices.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { startRackMaintenance } from "../rack/maintenance.ts";
import { type ComponentTarget, checkTarget, NOUNS, unknownComponent } from "./component-ids.ts";
import { type ComponentOutcome, forEach, refused, succeeded } from "./results.ts";
import { startShelfFirmware } from "./shelf-firmware.ts";

export interface UpdateComponentFirmware extends ComponentTarget {
  /** Id of a record of rack firmware; empty: the default of the rack's hardware type. */
  readonly targetVersion: string;
  /** Words of components; empty: all. */
  readonly components: readonly string[];
}

const LONGEST_VERSION = 256;

/**
 * Upgrades the firmware of devices. Trays and switches are their racks' affair: one request of maintenance a rack, which waits for its
 * devices and reports on each. Shelves are upgraded directly, by a run each. One outcome a device, or a rack where the call names racks.
 */
export async function updateComponentFirmware(
  deps: ServiceDeps,
  caller: Caller,
  input: UpdateComponentFirmware,
): Promise<readonly ComponentOutcome[]> {
  const ids = checkTarget(deps, input);
  if (input.targetVersion.length > LONGEST_VERSION)
    throw wrongField("target_version", `at most ${LONGEST_VERSION} characters`);
  const { kind } = input;
  if (kind === "rack")
    return forEach(ids, async (rackId) => {
      await startRackMaintenance(deps, caller, { rackId, scope: scopeOf(), activities: [activityOf(input)] });
    });
  if (kind === "power_shelf") {
    const requestId = randomUUID();
    return forEach(ids, (id) => startShelfFirmware(deps, caller, { ...input, id, requestId }));
  }
  return updateThroughRacks(deps, caller, { ...input, kind, ids });
}

const activityOf = ({ targetVersion, components }: UpdateComponentFirmware): Activity => ({
  kind: "firmware_upgrade",
  ...(targetVersion !== "" && { firmware_version: targetVersion }),
  ...(components.length > 0 && { components }),
});

/** Nothing named is the whole rack. */
const scopeOf = (kind?: ComponentKind, ids: readonly string[] = []): MaintenanceScope => ({
  machine_ids: kind === "machine" ? ids : [],
  switch_ids: kind === "switch" ? ids : [],
  power_shelf_ids: [],
});

/**
 * Devices of one rack: what is refused, is refused for the call. Of several racks: each has its own request, and each device its own
 * answer, so that one rack that is busy keeps no other from its upgrade.
 */
async function updateThroughRacks(
  deps: ServiceDeps,
  caller: Caller,
  input: UpdateComponentFirmware & { readonly kind: ComponentKind },
): Promise<readonly ComponentOutcome[]> {
  const { kind, ids } = input;
  const devices = await findPlacedDevices(deps.db, kind, ids);
  const faults = new Map(ids.flatMap((id) => faultOf(kind, id, devices.get(id)) ?? []));
  const ofRack = Map.groupBy(
    ids.filter((id) => !faults.has(id)),
    (id) => devices.get(id)?.rackId ?? "",
  );
  const [fault] = faults.values();
  if (fault && ofRack.size <= 1) throw fault;
  const answers = new Map([...faults].map(([id, error]) => [id, refused(id, error)]));
  for (const [rackId, members] of ofRack) {
    const asking = { rackId, scope: scopeOf(kind, members), activities: [activityOf(input)] };
    const refusal = await startRackMaintenance(deps, caller, asking).then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof AppError && error.kind !== "internal" && ofRack.size > 1) return error;
        throw error;
      },
    );
    for (const id of members) answers.set(id, refusal ? refused(id, refusal) : succeeded(id));
  }
  return ids.flatMap((id) => answers.get(id) ?? []);
}

function faultOf(kind: ComponentKind, id: string, device: PlacedDevice | undefined): [string, AppError][] | undefined {
  if (!device) return [[id, unknownComponent(kind, id)]];
  if (device.rackId !== null && !device.inMaas) return undefined;
  const message = device.inMaas
    ? `of ${NOUNS[kind]} ${id} ${ONLY_MAAS}: its firmware is not Millwright's`
    : `${NOUNS[kind]} ${id} is in no rack, and its firmware is upgraded through its rack`;
  return [[id, new AppError("failed_precondition", message, { forgeCode: "failed_precondition" })]];
}
