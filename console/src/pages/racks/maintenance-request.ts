import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  PreviewRackMaintenanceResponse,
  StartRackMaintenanceRequestSchema,
} from "../../../../contract/millwright/v1/rack_pb.js";

export interface Wish {
  readonly rackId: string;
  /** `kind/id` of each device; empty: all of the rack. */
  readonly chosen: ReadonlySet<string>;
  readonly activities: readonly string[];
  /** Empty: the default of the rack's hardware type. */
  readonly firmware: string;
  readonly reference: string;
}

/** In the words of the contract, and in their order. */
export const ACTIVITIES = [
  ["firmware_upgrade", "Firmware"],
  ["configure_nmx_cluster", "NMX cluster"],
  ["power_sequence", "Power sequence"],
] as const;

export function requestOf({ rackId, chosen, activities, firmware, reference }: Wish) {
  const idsOf = (kind: string) =>
    [...chosen].flatMap((key) => (key.startsWith(`${kind}/`) ? [key.slice(kind.length + 1)] : []));
  return {
    rackId,
    machineIds: idsOf("machine"),
    switchIds: idsOf("switch"),
    powerShelfIds: idsOf("power_shelf"),
    activities: activities.map((kind) => ({ kind, ...(kind === "firmware_upgrade" && { firmwareVersion: firmware }) })),
    reference,
  } satisfies MessageInitShape<typeof StartRackMaintenanceRequestSchema>;
}

/** What the button does, in numbers: `Maintain 12 devices, 8 of them reboot`. */
export function actOf({ devices }: Pick<PreviewRackMaintenanceResponse, "devices">): string {
  const disturbed = new Map<string, number>();
  for (const { disturbances } of devices)
    for (const each of disturbances) disturbed.set(each, (disturbed.get(each) ?? 0) + 1);
  const told = [...disturbed].map(([what, count]) => `${count} ${what}`);
  return [`Maintain ${devices.length} ${devices.length === 1 ? "device" : "devices"}`, ...told].join(", ");
}
