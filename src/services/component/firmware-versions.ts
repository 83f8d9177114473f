import { AppError } from "../../kernel/errors.ts";
import { componentsFor, type RackFirmware, suitsHardware } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { findPlacedDevices, type PlacedDevice } from "../../store/component/devices.ts";
import { listRackFirmware } from "../../store/rack-firmware/rack-firmware.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ComponentTarget, checkTarget, NOUNS, unknownComponent } from "./component-ids.ts";
import { findKnownRacks, type KnownRack } from "./racks.ts";
import { type ComponentOutcome, refused, succeeded } from "./results.ts";

export interface AvailableVersions {
  readonly result: ComponentOutcome;
  /** Ids of records of rack firmware. */
  readonly versions: readonly string[];
  /** Of trays: what the records have for each component. */
  readonly ofComponents: readonly { readonly component: string; readonly versions: readonly string[] }[];
}

const none = (result: ComponentOutcome): AvailableVersions => ({ result, versions: [], ofComponents: [] });

/** Which firmware could be written to each device, or rack: what is available for the hardware type of its rack. */
export async function listFirmwareVersions(
  deps: ServiceDeps,
  target: ComponentTarget,
): Promise<readonly AvailableVersions[]> {
  const ids = checkTarget(deps, target);
  const { kind } = target;
  const available = await listRackFirmware(deps.db, { onlyAvailable: true });
  const suiting = (type: string | null) => available.filter((firmware) => suitsHardware(firmware, type));
  if (kind === "rack") {
    const racks = await findKnownRacks(deps.db, ids);
    return ids.map((id) => versionsOfRack(id, racks.get(id), suiting));
  }
  const devices = await findPlacedDevices(deps.db, kind, ids);
  return ids.map((id) => {
    const device = devices.get(id);
    if (!device) return none(refused(id, unknownComponent(kind, id)));
    if (device.rackId === null)
      return none(refused(id, new AppError("failed_precondition", `${NOUNS[kind]} ${id} is in no rack`)));
    const wanted = kind === "machine" ? "compute" : kind;
    const records = suiting(device.hardwareType).filter(
      (firmware) => componentsFor(firmware, wanted, device.class).length > 0,
    );
    return {
      result: succeeded(id),
      versions: records.map((record) => record.id),
      ofComponents: kind === "machine" ? componentsOf(records, device) : [],
    };
  });
}

function versionsOfRack(
  id: string,
  rack: KnownRack | undefined,
  suiting: (type: string | null) => readonly RackFirmware[],
): AvailableVersions {
  if (!rack) return none(refused(id, unknownComponent("rack", id)));
  if (rack.profileId === null)
    return none(
      refused(id, new AppError("invalid_argument", `rack ${id} has no profile, so its hardware type is not known`)),
    );
  if (!rack.hasProfile)
    return none(refused(id, new AppError("not_found", `rack profile ${rack.profileId} of rack ${id} does not exist`)));
  return { result: succeeded(id), versions: suiting(rack.hardwareType).map((record) => record.id), ofComponents: [] };
}

function componentsOf(records: readonly RackFirmware[], device: PlacedDevice): AvailableVersions["ofComponents"] {
  const all = records.flatMap((record) => componentsFor(record, "compute", device.class));
  return [...Map.groupBy(all, ({ component }) => component)].map(([component, same]) => ({
    component,
    versions: [...new Set(same.map(({ version }) => version))],
  }));
}
