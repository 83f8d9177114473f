import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { Locator } from "../../capabilities/locator.ts";
import { GET_CHASSIS_STATUS } from "./chassis-status.ts";
import type { IpmiClient, IpmiRequest } from "./client.ts";

/** Chassis Identify (28.5): for how many seconds, or until it is taken back. */
const identify = (light: "lit" | "dark"): IpmiRequest => ({
  netFn: 0x00,
  command: 0x04,
  data: light === "lit" ? [0x00, 0x01] : [0x00],
  what: `Chassis Identify ${light}`,
  isCommand: true,
});

export function createMachineLocator(client: IpmiClient): Locator {
  return {
    readLocator: async (target: BmcTarget, call: CallContext) =>
      lightOf(await client.raw(target, GET_CHASSIS_STATUS, call)),
    async setLocator(target, light, call) {
      await client.raw(target, identify(light), call);
    },
  };
}

/** Of the third byte of Get Chassis Status: one bit says that the light is told at all, two say how it is. */
export function lightOf([, , misc = 0]: readonly number[]): "lit" | "dark" | "unknown" {
  if ((misc & 0x40) === 0) return "unknown";
  return (misc & 0x30) === 0 ? "dark" : "lit";
}
