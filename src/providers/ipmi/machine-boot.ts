import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { BootDevice, BootOverride } from "../../capabilities/boot-device.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { isRefusal } from "../../capabilities/device-failure.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import { keyOf, nameOf } from "../transport/bmc-gateway.ts";
import {
  type BootFlags,
  bootFlagsOf,
  GET_BOOT_FLAGS,
  type IpmiBootMode,
  isIpmiBootSource,
  KEEP_BOOT_FLAGS,
  setBootFlags,
} from "./boot-flags.ts";
import type { IpmiClient } from "./client.ts";

const NONE: BootOverride = { source: "none", lasts: "once" };
const REMEMBERED = 20_000;

export function createMachineBoot(client: IpmiClient, mode: IpmiBootMode): BootDevice {
  /**
   * BMCs that were just told a device, and gave it back with the flags invalid: they keep the device and drop the rest, so that
   * with them the device alone counts. Elsewhere invalid flags are used up, whatever device is left in them.
   */
  const neverValid = new LRUCache<string, true>({ max: REMEMBERED });

  const read = async (target: BmcTarget, call: CallContext): Promise<BootFlags> =>
    bootFlagsOf(await client.raw(target, GET_BOOT_FLAGS, call));
  const overrideIn = (target: BmcTarget, { valid, override }: BootFlags): BootOverride =>
    valid || neverValid.get(keyOf(target)) !== undefined ? override : NONE;

  return {
    async readBootOverride(target, call) {
      return overrideIn(target, await read(target, call));
    },

    async setBootOverride(target, source, call) {
      if (!isIpmiBootSource(source))
        throw bmcFailure(
          "unsupported",
          target,
          `${nameOf(target)}: IPMI cannot tell a machine to boot from ${source}; choose PXE, or a provider that speaks Redfish`,
        );
      if (overrideIn(target, await read(target, call)).source === source) return;
      await keepFlags(client, target, call);
      await client.raw(target, setBootFlags(source, mode), call);
      const { valid, override } = await read(target, call);
      if (!valid && override.source === source) neverValid.set(keyOf(target), true);
    },

    async clearBootOverride(target, call) {
      if ((await read(target, call)).override.source === "none") return;
      await client.raw(target, setBootFlags("none", mode), call);
    },
  };
}

/** Many BMCs lack this parameter, and keep the flags anyway. */
async function keepFlags(client: IpmiClient, target: BmcTarget, call: CallContext): Promise<void> {
  try {
    await client.raw(target, KEEP_BOOT_FLAGS, call);
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
}
