import { BOOT_SOURCES, type BootSource } from "../../capabilities/boot-device.ts";
import { AppError } from "../../kernel/errors.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { defineStep, type ProbeAnswer } from "../model/step.ts";
import { NO_EFFECT } from "./facts/in-the-way.ts";

/** "none": the machine boots in its own order. */
export const BOOT_DEVICES = [...BOOT_SOURCES, "none"] as const;
type Payload = { readonly device: BootSource | "none" };

/** Sets what the next boot is from, or clears that. Done when the BMC reads it back. It stays set: that is what was asked for. */
export const bootDevice = defineStep({
  kind: "boot_device",
  needs: ["boot"],
  defaults: { timeout: seconds(60), maxRetries: 2 },
  fromOutside: true,
  parse: ({ device }, field): Payload => {
    const known = BOOT_DEVICES.find((each) => each === device);
    if (known !== undefined) return { device: known };
    const why = `must be one of ${BOOT_DEVICES.join(", ")}`;
    throw new AppError("invalid_argument", `${field}.device: ${why}`, { field: `${field}.device` });
  },

  async before({ can, targets, call }) {
    const { source, lasts } = await can.boot.readBootOverride(await targets.bmc(), call);
    return { source, lasts };
  },
  async act({ payload: { device }, can, targets, call, log }) {
    const bmc = await targets.bmc();
    if (device === "none") await can.boot.clearBootOverride(bmc, call);
    else await can.boot.setBootOverride(bmc, device, call);
    log(`[boot_device] the BMC accepted ${device}\n`);
    return undefined;
  },
  async probe({ payload: { device }, can, targets, call }): Promise<ProbeAnswer> {
    const { source, lasts } = await can.boot.readBootOverride(await targets.bmc(), call);
    const message = source === "none" ? "the machine boots in its own order" : `the next boot is from ${source}`;
    // Some BMCs clear an override only to the disk, which is where their own order leads.
    const isCleared = device === "none" && (source === "none" || source === "disk");
    if (source !== device && !isCleared) return { state: "not_done", message, cause: NO_EFFECT };
    return {
      state: "done",
      message: lasts === "always" && source !== "none" ? `${message}, and every boot after it` : message,
    };
  },
  residue: () => "the machine may be set to boot from another source than its disk",
});
