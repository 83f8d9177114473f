import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { valueAt } from "../transport/device-json.ts";
import { SINCE } from "./microversion.ts";
import type { Nodes } from "./node.ts";
import { unlessRefused } from "./unless-refused.ts";

const EJECT = "eject_vmedia";

/**
 * Takes the medium out of the drive, by the API's own word where it has one, and before that by what Redfish drivers offer beside
 * it. With other drivers of an old Ironic it stays in until the next deployment.
 */
export async function ejectMedium({ client }: Nodes, target: BmcTarget, call: CallContext): Promise<void> {
  // A driver without virtual media declines, and then has no medium in either.
  await unlessRefused(async () => {
    const { minor } = await client.microversion(target, call);
    if (minor >= SINCE.virtualMedia) return client.delete(target, "/vmedia?device_types=cdrom", call);
    const { resource } = await client.get(target, "/vendor_passthru/methods", call);
    if (valueAt(resource, EJECT) !== undefined) await client.post(target, `/vendor_passthru/${EJECT}`, {}, call);
  });
}
