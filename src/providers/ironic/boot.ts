import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { BootDevice, BootOverride, BootSource } from "../../capabilities/boot-device.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { textAt, valueAt } from "../device-json.ts";
import type { Nodes } from "./node.ts";

const DEVICES = { pxe: "pxe", http: "uefihttp", disk: "disk", cd: "cdrom" } as const satisfies Record<
  BootSource,
  string
>;
const PLACE = "/management/boot_device";

/** Ironic asks the BMC for it each time, and keeps nothing. */
export async function readBootDevice({ client }: Nodes, target: BmcTarget, call: CallContext): Promise<BootOverride> {
  const { resource } = await client.get(target, PLACE, call);
  const named = textAt(resource, "boot_device");
  const lasts = valueAt(resource, "persistent") === true ? "always" : "once";
  if (named === undefined) return { source: "none", lasts: "once" };
  const source = (Object.keys(DEVICES) as BootSource[]).find((each) => DEVICES[each] === named);
  return { source: source ?? "other", lasts };
}

/** Ironic has no word for "in its own order": the disk, for good, is what that order comes to. */
export async function bootFromDisk(nodes: Nodes, target: BmcTarget, call: CallContext): Promise<void> {
  const now = await readBootDevice(nodes, target, call);
  if (now.source === "none" || now.source === "disk") return;
  await nodes.readForCommand(target, call);
  await nodes.client.put(target, PLACE, { boot_device: DEVICES.disk, persistent: true }, call);
}

export function createIronicBoot(nodes: Nodes): BootDevice {
  return {
    readBootOverride: (target, call) => readBootDevice(nodes, target, call),
    async setBootOverride(target, source, call) {
      const now = await readBootDevice(nodes, target, call);
      if (now.source === source) return;
      await nodes.readForCommand(target, call);
      await nodes.client.put(target, PLACE, { boot_device: DEVICES[source], persistent: false }, call);
    },
    clearBootOverride: (target, call) => bootFromDisk(nodes, target, call),
  };
}
