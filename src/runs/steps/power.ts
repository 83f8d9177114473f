import { AppError } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { defineStep, type ProbeAnswer } from "../model/step.ts";
import { whileUp } from "./facts/boot-id.ts";
import { NO_EFFECT, silent } from "./facts/in-the-way.ts";

type Payload = { readonly power: "on" | "off" };

/**
 * Switches the machine on or off at its BMC, without a word to its system. Done when the BMC reads the power back. A machine that was
 * switched off this way is off on purpose, until somebody sees it on.
 */
export const power = defineStep({
  kind: "power",
  needs: ["power"],
  defaults: { timeout: minutes(2), maxRetries: 1 },
  fromOutside: true,
  interrupts: true,
  parse: ({ power: wanted }, field): Payload => {
    if (wanted === "on" || wanted === "off") return { power: wanted };
    throw new AppError("invalid_argument", `${field}.power: must be on or off`, { field: `${field}.power` });
  },

  async before({ can, targets, call }) {
    return { power: await can.power.readPower(await targets.bmc(), call) };
  },
  async act({ payload, can, targets, call, log }) {
    const { commanded } = await can.power.setPower(await targets.bmc(), payload.power, call);
    log(
      commanded ? `[power] the BMC accepted power ${payload.power}\n` : `[power] power is ${payload.power} already\n`,
    );
    return undefined;
  },
  async probe({ payload, can, targets, call, runId }): Promise<ProbeAnswer> {
    const bmc = await targets.bmc();
    const seen = await whileUp(() => can.power.readPower(bmc, call));
    if (seen === undefined) return { state: "unknown", message: "the BMC does not answer", cause: silent("bmc") };
    const message = `the BMC reports power ${seen}`;
    if (seen === "unknown") return { state: "unknown", message };
    if (seen === `powering_${payload.power}`) return { state: "in_progress", message };
    if (seen !== payload.power)
      return { state: "not_done", message: `${message}, wanted ${payload.power}`, cause: NO_EFFECT };
    return {
      state: "done",
      message,
      facts: { powerState: seen, offOnPurpose: payload.power === "off" ? { run: runId } : null },
    };
  },
  residue: ({ power: wanted }) => `the machine may still be switched ${wanted}: the request cannot be undone`,
});
