import { StepFailure } from "../kernel/errors.ts";
import type { BootDevice } from "./boot-device.ts";
import type { Cluster } from "./cluster.ts";
import type { ClusterAccess } from "./clusters/access.ts";
import type { ComputerSystem } from "./computer-system.ts";
import type { DeviceEvents } from "./events/device-events.ts";
import type { Imaging } from "./imaging.ts";
import type { Inventory } from "./inventory.ts";
import type { Playbooks } from "./local/playbooks.ts";
import type { Locator } from "./locator.ts";
import type { NetInstall } from "./net-install.ts";
import type { NodeList } from "./node-list.ts";
import type { PowerControl } from "./power-control.ts";
import type { Fabric } from "./rack/fabric.ts";
import type { FirmwareUpdate } from "./rack/firmware.ts";
import type { BmcManager } from "./rack/manager.ts";
import type { DeviceTasks } from "./rack/tasks.ts";
import type { RemoteExec } from "./remote-exec.ts";
import type { Reset } from "./reset.ts";
import type { Sensors } from "./sensors.ts";
import type { Vitals } from "./vitals.ts";

/** Everything that hardware can be asked, by the word that steps and handlers use to need it. */
export interface Capabilities {
  readonly power: PowerControl;
  readonly inventory: Inventory;
  readonly sensors: Sensors;
  readonly system: ComputerSystem;
  readonly reset: Reset;
  readonly boot: BootDevice;
  readonly imaging: Imaging;
  readonly netInstall: NetInstall;
  readonly locator: Locator;
  readonly exec: RemoteExec;
  readonly playbooks: Playbooks;
  readonly cluster: Cluster;
  readonly clusterAccess: ClusterAccess;
  readonly vitals: Vitals;
  readonly nodes: NodeList;
  readonly events: DeviceEvents;
  readonly firmware: FirmwareUpdate;
  readonly tasks: DeviceTasks;
  readonly manager: BmcManager;
  readonly fabric: Fabric;
}
export type Capability = keyof Capabilities;

/** One technology. A missing ability is a missing capability, never a method that throws. */
export interface Provider {
  readonly name: string;
  readonly can: Partial<Capabilities>;
}

export function need<const C extends Capability>(provider: Provider, needs: readonly C[]): Pick<Capabilities, C> {
  const missing = needs.filter((capability) => provider.can[capability] === undefined);
  if (missing.length > 0) {
    throw new StepFailure("not_on_this_server", `provider ${provider.name} cannot do: ${missing.join(", ")}`, {
      disposition: "fail",
      facts: { what: "capability", name: missing.join(", ") },
    });
  }
  return provider.can as Pick<Capabilities, C>;
}
