import { type Duration, minutes } from "../../../kernel/time/duration.ts";
import type { Activation, FirmwareComponent } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import { childStep } from "../../children/child-run.ts";
import type { Step } from "../../model/plan/plan.ts";
import { type ActivateFirmwarePayload, activateFirmware } from "./activate-firmware.ts";
import type { WantedFirmware } from "./firmware-parts.ts";
import { updateFirmware } from "./update-firmware.ts";

const SETTLES = minutes(5);

/** How long a device that says that it is done gets to show the version, in seconds. */
export const settlesWithin = (deadline: Duration): number => Math.ceil(Math.min(SETTLES, deadline / 12) / 1_000);

/** What is done to one device so that it has these components of a record: each is written in its order, and then all run. */
export function deviceFirmwareSteps(
  firmwareId: string,
  components: readonly FirmwareComponent[],
  /** For writing one component. */
  deadline: Duration = updateFirmware.defaults.timeout,
): readonly Step[] {
  const settle_seconds = settlesWithin(deadline);
  const timeoutSeconds = Math.ceil(deadline / 1_000);
  const written = components.map(({ component, version, digest, targets, activation }) =>
    childStep(
      updateFirmware,
      { firmware_id: firmwareId, component, version, digest, targets, activation, settle_seconds },
      { name: `update_${component}`, timeoutSeconds },
    ),
  );
  const asWanted = ({ component, version, targets }: FirmwareComponent): WantedFirmware => ({
    component,
    version,
    targets,
  });
  const restarts = restartsFor(components);
  const activated = restarts.map((activation, at) => {
    const isLast = at === restarts.length - 1;
    const proven = isLast ? components : components.filter((each) => each.activation === activation);
    const payload = { wanted: proven.map(asWanted), activation, settle_seconds };
    return childStep(activateFirmware, payload, { name: `activate_by_${activation}` });
  });
  return [...written, ...activated];
}

/**
 * The restarts that it takes, in their order. A power cycle restarts the host, and not the BMC. A shelf feeds the rack: only its
 * controller is restarted.
 */
function restartsFor(components: readonly FirmwareComponent[]): readonly ActivateFirmwarePayload["activation"][] {
  const takes = (one: Activation) => components.some(({ activation }) => activation === one);
  const ofHost = (["power_cycle", "host_reset"] as const).find(takes);
  if (components.some(({ device }) => device === "power_shelf"))
    return takes("bmc_reset") || ofHost !== undefined ? ["bmc_reset"] : [];
  return [...(takes("bmc_reset") ? (["bmc_reset"] as const) : []), ...(ofHost === undefined ? [] : [ofHost])];
}
