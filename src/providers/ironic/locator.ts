import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { Locator } from "../../capabilities/locator.ts";
import { listAt, textAt, valueAt } from "../transport/device-json.ts";
import { SINCE } from "./microversion.ts";
import type { Nodes } from "./node.ts";
import { keyOfNode } from "./power.ts";
import { unlessRefused } from "./unless-refused.ts";

const PLACE = "/management/indicators";
/** What a person sees from the aisle, the best first. */
const COMPONENTS = ["system", "chassis"] as const;
const LIT: readonly (string | undefined)[] = ["on", "blinking"];

const REMEMBERED = 20_000;

/**
 * The light that Ironic's driver offers on the front of the machine. One that cannot be switched is as good as none: drivers
 * without lights refuse the question, and some that list a light refuse to switch it.
 */
export function createIronicLocator(nodes: Nodes): Locator {
  const withoutLight = new LRUCache<string, true>({ max: REMEMBERED });

  async function findLight(target: BmcTarget, call: CallContext): Promise<string | undefined> {
    if (withoutLight.get(keyOfNode(target))) return undefined;
    if ((await nodes.client.microversion(target, call)).minor < SINCE.indicators) return undefined;
    const answer = await unlessRefused(() => nodes.client.get(target, PLACE, call));
    const lights = listAt(answer?.resource, "indicators");
    return COMPONENTS.flatMap((component) =>
      lights.flatMap((light) => {
        if (textAt(light, "component") !== component || valueAt(light, "readonly") === true) return [];
        return textAt(light, "name")?.replace(/[^A-Za-z0-9._~@-]/g, "") || [];
      }),
    )[0];
  }

  return {
    async readLocator(target, call) {
      const light = await findLight(target, call);
      if (light === undefined) return "unknown";
      const answer = await unlessRefused(() => nodes.client.get(target, `${PLACE}/${light}`, call));
      const state = textAt(answer?.resource, "state");
      if (LIT.includes(state)) return "lit";
      return state === "off" ? "dark" : "unknown";
    },
    async setLocator(target, wanted, call) {
      await nodes.readForCommand(target, call);
      const light = await findLight(target, call);
      // A light that is not there is no reason to leave the rest undone: reading it says "unknown".
      if (light === undefined) return;
      const body = { state: wanted === "lit" ? "on" : "off" };
      const set = await unlessRefused(async () => {
        await nodes.client.put(target, `${PLACE}/${light}`, body, call);
        return true;
      });
      if (set === undefined) withoutLight.set(keyOfNode(target), true);
    },
  };
}
