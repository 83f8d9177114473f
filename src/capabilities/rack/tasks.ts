import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";

/**
 * What a device says of work that it does by itself, such as an update of firmware. waits: it is done with its part, and waits for a
 * restart. gone: it does not know the task, or no longer; nothing follows from that, since some devices drop a task when it ends,
 * and some when they restart.
 */
export interface DeviceTask {
  readonly id: string;
  readonly state: "running" | "waits" | "completed" | "failed" | "gone";
  readonly percent: number | null;
  /** In the device's own words; empty for none. */
  readonly message: string;
  /** The parts that it is for, as `InstalledFirmware.path`; empty where the device does not say. */
  readonly targets: readonly string[];
}

/** Reading what a device does by itself. Changes nothing on it. */
export interface DeviceTasks {
  /** The tasks that the device lists; null where it has no list, so that nothing follows from a task that is missing in it. */
  listTasks(target: BmcTarget, call: CallContext): Promise<readonly string[] | null>;
  readTask(target: BmcTarget, id: string, call: CallContext): Promise<DeviceTask>;
}
