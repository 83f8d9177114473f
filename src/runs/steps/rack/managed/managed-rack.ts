import type { CallContext } from "../../../../capabilities/call.ts";
import { DeviceFailure } from "../../../../capabilities/device-failure.ts";
import type { InstalledFirmware } from "../../../../capabilities/rack/firmware.ts";
import type { ManagedNode, RackManager } from "../../../../capabilities/rack/rack-manager.ts";
import { StepFailure } from "../../../../kernel/errors.ts";
import type { Rack } from "../../../../lifecycles/rack/rack.ts";
import type { On } from "../../../model/step.ts";
import type { RunTarget } from "../../../targets/run-target.ts";
import type { KnownBmc } from "../reach-bmc.ts";

/** What a device shows itself, through its own BMC. */
export interface DeviceSeen {
  /** Null: it cannot be asked for versions. */
  readonly installed: readonly InstalledFirmware[] | null;
  readonly known: KnownBmc;
}

/** The devices of a rack, for a rack manager. */
export interface ManagedDevices {
  /**
   * A device as the rack manager is told of it.
   *
   * @throws StepFailure "endpoint_missing" or "credentials_missing".
   */
  nodeOf(rackId: string, device: RunTarget): Promise<ManagedNode>;
  /** Reads, after it was seen that the BMC answers for this device. */
  look(device: RunTarget, call: CallContext): Promise<DeviceSeen>;
  /** The name of a firmware file, by which the rack manager has it. */
  fileName(digest: string): Promise<string>;
}

/** What steps on a rack work with that go through a rack manager. */
export interface OnManagedRack extends On<Rack> {
  readonly devices: ManagedDevices;
  /** Absent: none is configured on this server. */
  readonly rackManager?: RackManager;
}

/** A run that began with a rack manager goes on with one: devices may be at work for it. */
export function requireManager({ rackManager }: Pick<OnManagedRack, "rackManager">): RackManager {
  if (rackManager !== undefined) return rackManager;
  throw new StepFailure(
    "not_on_this_server",
    "this server has no rack manager: set rack_manager.url and rack_manager.api, and restart the server",
    { facts: { what: "setting", name: "rack_manager.url" } },
  );
}

/** Nobody answers, not now, or in words that make no sense: asked once more, it may tell. */
export const mayAnswerLater = (error: unknown): error is DeviceFailure =>
  error instanceof DeviceFailure && ["silent", "busy", "odd"].includes(error.family);

/** It was understood and refused, or never sent: nothing of it was begun. All else leaves that open. */
export const isSurelyRefused = (error: unknown): error is DeviceFailure =>
  error instanceof DeviceFailure && ["declines", "keeps_out", "forbids", "unproven"].includes(error.family);
