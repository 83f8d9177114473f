import { AppError } from "../../kernel/errors.ts";
import {
  componentsFor,
  type RackFirmware,
  suitsHardware,
  whyUnavailable,
} from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { deviceFirmwareSteps } from "../../runs/steps/rack/device-steps.ts";
import type { PlacedDevice } from "../../store/component/devices.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findDefaultFor, listRackFirmware } from "../../store/rack-firmware/rack-firmware.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { refusal, startDeviceRun } from "./device-run.ts";

interface ShelfFirmware {
  readonly id: string;
  readonly targetVersion: string;
  readonly components: readonly string[];
  readonly requestId: string;
}

/** Starts a run that writes firmware to one shelf. */
export const startShelfFirmware = (deps: ServiceDeps, caller: Caller, input: ShelfFirmware): Promise<void> =>
  startDeviceRun(deps, caller, {
    kind: "power_shelf",
    id: input.id,
    requestId: input.requestId,
    disturbs: true,
    async planFor(tx, shelf) {
      const firmware = await firmwareFor(tx, shelf, input.targetVersion);
      const components = componentsFor(firmware, "power_shelf", shelf.class, input.components);
      if (components.length === 0)
        throw refusal(`${firmware.id} has no such firmware for power shelves of class ${shelf.class}`);
      return {
        planId: "shelf-firmware",
        displayName: "Firmware of a power shelf",
        steps: deviceFirmwareSteps(firmware.id, components),
      };
    },
  });

async function firmwareFor(tx: Transaction, shelf: PlacedDevice, targetVersion: string): Promise<RackFirmware> {
  const { hardwareType } = shelf;
  const wanted =
    targetVersion === "" && hardwareType !== null ? await findDefaultFor(tx, hardwareType) : targetVersion || undefined;
  if (wanted === undefined)
    throw refusal(`power shelf ${shelf.id} is in a rack without default firmware: name a version`);
  const [firmware] = await listRackFirmware(tx, { ids: [wanted] });
  const next = `millwright rack-firmware get ${wanted}`;
  if (!firmware)
    throw new AppError("not_found", `rack firmware ${wanted} does not exist`, {
      next: "millwright rack-firmware list",
    });
  const unavailable = whyUnavailable(firmware);
  if (unavailable !== undefined) throw refusal(unavailable, next);
  if (!suitsHardware(firmware, hardwareType))
    throw refusal(
      `rack firmware ${wanted} is for hardware type ${firmware.hardwareType}, and the shelf's rack is of type ${hardwareType ?? "unknown"}`,
      next,
    );
  return firmware;
}
