import { collectSteps } from "../model/step.ts";
import { batchRuns } from "./batch-runs.ts";
import { bootDevice } from "./boot-device.ts";
import { decommissionSteps } from "./fleet/decommission/index.ts";
import { onboardBatch } from "./fleet/onboard-batch.ts";
import { onboardingSteps } from "./fleet/onboarding/index.ts";
import { join } from "./join.ts";
import { net } from "./net.ts";
import { netboot } from "./netboot.ts";
import { power } from "./power.ts";
import { activateFirmware } from "./rack/activate-firmware.ts";
import { configureFabric, validateFabric } from "./rack/configure-fabric.ts";
import { followFirmwareJob } from "./rack/managed/follow-firmware-job.ts";
import { configureManagedFabric, validateManagedFabric } from "./rack/managed/managed-fabric.ts";
import { submitFirmware } from "./rack/managed/submit-firmware.ts";
import { rackFirmware, rackPower, validateDevices } from "./rack/rack-fan-outs.ts";
import { setDevicePower } from "./rack/set-device-power.ts";
import { updateFirmware } from "./rack/update-firmware.ts";
import { validateDevice } from "./rack/validate-device.ts";
import { reboot } from "./reboot.ts";
import { repave } from "./repave.ts";
import { rma } from "./rma.ts";
import { ssh } from "./ssh.ts";
import { verify } from "./verify.ts";

/** Every kind of step that a plan may consist of. */
export const allSteps = collectSteps([ssh, reboot, netboot, repave, join, verify, net, rma]);

/** The same, and those of short runs that have a call of their own: no plan names them, since the contract of plans has no word for them. */
export const serverSteps = collectSteps([
  ...allSteps.values(),
  power,
  bootDevice,
  batchRuns,
  onboardBatch,
  ...[updateFirmware, activateFirmware, setDevicePower, validateDevice],
  ...[configureFabric, validateFabric, rackFirmware, rackPower, validateDevices],
  ...decommissionSteps,
  ...onboardingSteps,
  ...[submitFirmware, followFirmwareJob, configureManagedFabric, validateManagedFabric],
]);
