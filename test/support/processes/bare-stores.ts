import { batchStore } from "../../../src/store/batch/batches.ts";
import { expectedPowerShelfStore } from "../../../src/store/expected-power-shelf/expected-power-shelves.ts";
import { expectedRackStore } from "../../../src/store/expected-rack/expected-racks.ts";
import { expectedSwitchStore } from "../../../src/store/expected-switch/expected-switches.ts";
import { fleetAllocationStore } from "../../../src/store/fleet/allocations.ts";
import { fleetNodeStore } from "../../../src/store/fleet/nodes.ts";
import { fleetTaskStore } from "../../../src/store/fleet/tasks.ts";
import { hostReprovisionStore } from "../../../src/store/host-reprovision/host-reprovisions.ts";
import { installStore } from "../../../src/store/install/installs.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { powerShelfStore } from "../../../src/store/power-shelf/power-shelves.ts";
import { rackStore } from "../../../src/store/rack/racks.ts";
import { rackFirmwareStore } from "../../../src/store/rack-firmware/rack-firmware.ts";
import { restoreReviewStore } from "../../../src/store/restore/reviews.ts";
import { runStore } from "../../../src/store/run/runs.ts";
import { switchStore } from "../../../src/store/switch/switches.ts";

/**
 * The stores of all things that the server has, without what else is wired with them: processes that are started to be killed, and
 * there are hundreds, are up in half the time. `writers.test.ts` holds them against the server's own.
 */
export const bareStores = [
  powerShelfStore,
  expectedPowerShelfStore,
  machineStore,
  runStore,
  installStore,
  batchStore,
  rackStore,
  rackFirmwareStore,
  switchStore,
  expectedSwitchStore,
  expectedRackStore,
  fleetTaskStore,
  hostReprovisionStore,
  fleetNodeStore,
  fleetAllocationStore,
  restoreReviewStore,
] as const;
