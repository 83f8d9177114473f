import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { deviceKeyOf } from "../transport/bmc-gateway.ts";

const REMEMBERED = 20_000;

/** Opens what stands behind a BMC at the places found there before; they are found anew once the device no longer knows them. */
export function openAtKnownPlaces<Places extends object, Opened>(ways: {
  readonly find: (target: BmcTarget, call: CallContext) => Promise<Places>;
  readonly read: (target: BmcTarget, call: CallContext, places: Places) => Promise<Opened>;
}): (target: BmcTarget, call: CallContext) => Promise<Opened> {
  const known = new LRUCache<string, Places>({ max: REMEMBERED });
  return async (target, call) => {
    const key = deviceKeyOf(target);
    const before = known.get(key);
    if (before !== undefined) {
      try {
        return await ways.read(target, call, before);
      } catch (error) {
        if (!(error instanceof DeviceFailure) || error.status !== 404) throw error;
        // Other firmware, or another device, at the same address: look again.
        known.delete(key);
      }
    }
    const places = await ways.find(target, call);
    const opened = await ways.read(target, call, places);
    known.set(key, places);
    return opened;
  };
}
