import { AppError, wrongField } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import {
  componentsFor,
  FIRMWARE_CLASSES,
  suitsHardware,
  whyUnavailable,
} from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { type FirmwareRequest, listFirmwareRequests } from "../../store/component/firmware-runs.ts";
import { listRackFirmware } from "../../store/rack-firmware/rack-firmware.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { startRackMaintenance } from "../rack/maintenance.ts";
import { getRackFirmware } from "../rack-firmware/rack-firmware.ts";
import { unknownComponent } from "./component-ids.ts";
import { jobIdOf } from "./firmware-status.ts";
import { findKnownRacks, type KnownRack } from "./racks.ts";

export interface ApplyFirmware {
  readonly rackId: string;
  readonly firmwareId: string;
  /** dev or prod: the class of the rack. */
  readonly firmwareType: string;
}

export interface AppliedTo {
  readonly deviceId: string;
  readonly kind: KnownRack["devices"][number]["kind"];
  readonly jobId: string;
}

const refusal = (message: string, next: string): AppError =>
  new AppError("failed_precondition", message, { forgeCode: "failed_precondition", next });

/** A maintenance of the rack that does nothing but write this firmware. A job for each device that it has firmware for. */
export async function applyRackFirmware(
  deps: ServiceDeps,
  caller: Caller,
  input: ApplyFirmware,
): Promise<readonly AppliedTo[]> {
  const rackId = parseRackId(input.rackId, "rack_id");
  const wanted = FIRMWARE_CLASSES.find((word) => word === input.firmwareType);
  if (wanted === undefined) throw wrongField("firmware_type", `must be one of ${FIRMWARE_CLASSES.join(", ")}`);
  const rack = (await findKnownRacks(deps.db, [rackId])).get(rackId);
  if (!rack) throw unknownComponent("rack", rackId);
  const firmware = await getRackFirmware(deps, input.firmwareId);
  const get = `millwright rack-firmware get ${firmware.id}`;
  const unavailable = whyUnavailable(firmware);
  if (unavailable !== undefined) throw refusal(unavailable, get);
  if (!suitsHardware(firmware, rack.hardwareType))
    throw refusal(
      `rack firmware ${firmware.id} is for hardware type ${firmware.hardwareType}, and rack ${rackId} is of type ${rack.hardwareType ?? "unknown"}`,
      get,
    );
  if (rack.class !== wanted)
    throw refusal(`rack ${rackId} is of class ${rack.class}, not ${wanted}`, `millwright rack show ${rackId}`);
  const kinds = { machine: "compute", switch: "switch", power_shelf: "power_shelf" } as const;
  const devices = rack.devices.filter(({ kind }) => componentsFor(firmware, kinds[kind], rack.class).length > 0);
  if (devices.length === 0)
    throw refusal(`rack ${rackId} has no devices that rack firmware ${firmware.id} has firmware for`, get);
  const { requestId } = await startRackMaintenance(deps, caller, {
    rackId,
    scope: { machine_ids: [], switch_ids: [], power_shelf_ids: [] },
    activities: [{ kind: "firmware_upgrade", firmware_version: firmware.id }],
  });
  return devices.map(({ id, kind }) => ({ deviceId: id, kind, jobId: jobIdOf(requestId, id) }));
}

export interface AppliedFirmware extends FirmwareRequest {
  readonly firmwareId: string;
  readonly firmwareType: string;
  readonly isAvailable: boolean;
  readonly hardwareType: string;
}

const MOST_RECORDS = 1_000;

/** What was requested of which rack, the newest first, as far as the history goes back. */
export async function listAppliedFirmware(
  deps: ServiceDeps,
  filter: { readonly firmwareId: string; readonly rackIds: readonly string[] },
): Promise<ReadonlyMap<string, readonly AppliedFirmware[]>> {
  const { firmwareId, rackIds } = filter;
  const requests = await listFirmwareRequests(
    deps.lists ?? deps.db,
    { ...(firmwareId !== "" && { firmwareId }), ...(rackIds.length > 0 && { rackIds }) },
    MOST_RECORDS,
  );
  const named = requests.flatMap((request) =>
    request.firmwareId === null ? [] : [{ ...request, firmwareId: request.firmwareId }],
  );
  const firmware = new Map(
    (await listRackFirmware(deps.db, { ids: [...new Set(named.map((each) => each.firmwareId))] })).map((each) => [
      each.id,
      each,
    ]),
  );
  const racks = await findKnownRacks(deps.db, [...new Set(named.map(({ rackId }) => rackId))]);
  return Map.groupBy(
    named.map((request) => ({
      ...request,
      firmwareType: racks.get(request.rackId)?.class ?? "",
      isAvailable: firmware.get(request.firmwareId)?.available ?? false,
      hardwareType: firmware.get(request.firmwareId)?.hardwareType ?? "",
    })),
    ({ rackId }) => rackId,
  );
}
