import type { Timestamp } from "@bufbuild/protobuf/wkt";

/** What power shelves and switches have in common for a chip. */
interface DeviceLike {
  readonly id: string;
  readonly state: string;
  readonly stateSince?: Timestamp | undefined;
  readonly condition: string;
  readonly failing: boolean;
  readonly stuck: boolean;
}

export const standingOfDevice = (kind: string, device: DeviceLike) => ({
  kind,
  id: device.id,
  state: device.state,
  since: device.stateSince,
  isWaiting: device.condition === "waiting",
  isFailing: device.failing || device.stuck,
  needsPerson: device.condition === "needs_intervention",
});

/** Since when it fails, until it is stuck for that: both lists offer the same. */
export const DEVICE_PRESETS = [
  { label: "Needs somebody", filter: "stuck=true" },
  { label: "Failing", filter: "failing=true" },
  { label: "Not on", filter: 'power_state!="on"' },
] as const;
