import { AppError } from "../../../kernel/errors.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import { defineStepOn, type ProbeReport } from "../../model/step.ts";
import { NO_EFFECT } from "../facts/in-the-way.ts";
import type { OnDevice } from "./on-device.ts";
import { confirmDevice, patiently, unknownIfSilent } from "./reach-bmc.ts";

export type SetDevicePowerPayload = { readonly desired: "on" | "off" };

/** Switches a tray, a switch or a shelf on or off, and reads that back. */
export const setDevicePower = defineStepOn<OnDevice>()({
  kind: "set_device_power",
  needs: ["power"],
  mayUse: ["inventory", "system"],
  defaults: { timeout: minutes(5), maxRetries: 2 },
  fromOutside: true,
  interrupts: true,
  parse: ({ desired }, field): SetDevicePowerPayload => {
    if (desired === "on" || desired === "off") return { desired };
    throw new AppError("invalid_argument", `${field}.desired: must be on or off`, { field: `${field}.desired` });
  },

  async before(context) {
    const { can, call } = context;
    const target = await context.bmc();
    return patiently(call, async () => {
      await confirmDevice(context, target);
      return { power: await can.power.readPower(target, call) };
    });
  },

  async act({ payload, can, call, bmc, log }) {
    const { commanded } = await can.power.setPower(await bmc(), payload.desired, call);
    const is = commanded ? "the BMC accepted power" : "the power is already";
    log(`[power] ${is} ${payload.desired}\n`);
    return undefined;
  },

  async probe({ payload: { desired }, can, call, bmc }): Promise<ProbeReport> {
    const target = await bmc();
    return unknownIfSilent(async () => {
      const seen = await can.power.readPower(target, call);
      const message = `the BMC reports power ${seen}`;
      if (seen === desired) return { state: "done", message, facts: { powerState: seen } };
      if (seen === "unknown") return { state: "unknown", message };
      if (seen === `powering_${desired}`) return { state: "in_progress", message };
      return { state: "not_done", message: `${message}, wanted ${desired}`, cause: NO_EFFECT };
    });
  },

  residue: ({ desired }) => `the device may still be switched ${desired}`,
});
