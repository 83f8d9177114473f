import type { BootSeen } from "../../capabilities/computer-system.ts";
import type { PowerState } from "../../capabilities/power-control.ts";
import type { Capability } from "../../capabilities/provider.ts";
import type { InstalledFirmware } from "../../capabilities/rack/firmware.ts";
import type { Machine, MachineSpec } from "../../lifecycles/machine/machine.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";
import type { Workflows } from "../../runs/workflows/workflow.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { ClusterProbes } from "./cluster-checks.ts";
import type { ReferenceDeps } from "./references.ts";

/** What the server can do for a run: the kinds of steps, the scripts, and what the provider of a machine can. */
export interface RunDeps extends ServiceDeps, ReferenceDeps {
  /** Empty where the machine names a provider that this server does not have. */
  capabilitiesOf(spec: MachineSpec): ReadonlySet<Capability>;
  /** Null: clusters are not tried before a run needs them. */
  readonly clusterProbes: ClusterProbes | null;
  /** Asks the machine's BMC now. Absent: the server reaches no machines. */
  readPower?(machine: Machine, signal: AbortSignal): Promise<PowerState>;
  /** When the machine was last reset, as its BMC says now; null where it does not tell. Absent: the server reaches no machines. */
  readBoot?(machine: Machine, signal: AbortSignal): Promise<BootSeen | null>;
  /** Asks a device of a rack for its firmware now. Absent: the server reaches no devices. */
  readFirmware?(device: RunTarget, signal: AbortSignal): Promise<readonly InstalledFirmware[]>;
  /** Asks the machine's BMC for a second virtual drive: why it has none; undefined where it has one, or does not say. Absent: nobody asks. */
  findNoSeedDrive?(machine: Machine): Promise<string | undefined>;
  /** Why no seed can be written into the image; undefined where one can, or its server does not answer now. Absent: nobody asks. */
  findUnfitImage?(location: string): Promise<string | undefined>;
  /** Whether the machine's provider inserts a second medium, or one that this server serves. */
  takesSeeds(spec: MachineSpec): boolean;
  /** Where BMCs fetch seeds from; null: nobody has said. */
  readonly seedsAt: string | null;
  /** Absent: those of the server. */
  readonly workflows?: Workflows;
}
