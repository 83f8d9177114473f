import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { BootDevice, BootOverride, BootSource } from "../../capabilities/boot-device.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { listAt, textAt, valueAt } from "../transport/device-json.ts";
import type { IronicNode, Nodes } from "./node.ts";

const DEVICES = { pxe: "pxe", http: "uefihttp", disk: "disk", cd: "cdrom" } as const satisfies Record<
  BootSource,
  string
>;
const PLACE = "/management/boot_device";

/**
 * Ironic asks the BMC for it each time, and keeps nothing. A device that lasts neither once nor always is the one that an
 * override named which is off by now.
 */
async function readBootDevice({ client }: Nodes, target: BmcTarget, call: CallContext): Promise<BootOverride> {
  const { resource } = await client.get(target, PLACE, call);
  const named = textAt(resource, "boot_device");
  const persistent = valueAt(resource, "persistent");
  if (named === undefined || typeof persistent !== "boolean") return { source: "none", lasts: "once" };
  const source = (Object.keys(DEVICES) as BootSource[]).find((each) => DEVICES[each] === named);
  return { source: source ?? "other", lasts: persistent ? "always" : "once" };
}

/** Ironic has no word for "in its own order": the disk, for good, is what that order comes to. */
export async function bootFromDisk(nodes: Nodes, target: BmcTarget, call: CallContext): Promise<void> {
  const now = await readBootDevice(nodes, target, call);
  if (now.source === "none" || now.source === "disk") return;
  await nodes.readForCommand(target, call);
  await nodes.client.put(target, PLACE, { boot_device: DEVICES.disk, persistent: true }, call);
}

/** Some drivers fall over a device that they do not know, which looks as if they were busy. */
async function refuseUnknown(
  { client }: Nodes,
  target: BmcTarget,
  node: IronicNode,
  device: string,
  call: CallContext,
) {
  const { resource } = await client.get(target, `${PLACE}/supported`, call);
  const known = listAt(resource, "supported_boot_devices");
  if (known.includes(device)) return;
  throw new DeviceFailure(
    "unsupported",
    "bmc",
    `${node.label} cannot be booted from ${device}: its driver in Ironic knows ${known.join(", ") || "no boot device"}`,
  );
}

export function createIronicBoot(nodes: Nodes): BootDevice {
  return {
    readBootOverride: (target, call) => readBootDevice(nodes, target, call),
    async setBootOverride(target, source, call) {
      const now = await readBootDevice(nodes, target, call);
      if (now.source === source) return;
      const node = await nodes.readForCommand(target, call);
      await refuseUnknown(nodes, target, node, DEVICES[source], call);
      await nodes.client.put(target, PLACE, { boot_device: DEVICES[source], persistent: false }, call);
    },
    clearBootOverride: (target, call) => bootFromDisk(nodes, target, call),
  };
}
