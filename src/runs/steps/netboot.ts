import type { BootSource } from "../../capabilities/boot-device.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { type NetbootMode, parsePayload } from "../model/plan/payloads.ts";
import { defineStep } from "../model/step.ts";
import { NO_EFFECT } from "./facts/in-the-way.ts";

const SOURCES = { PXE: "pxe", HTTP: "http", DISK: "disk" } as const satisfies Record<NetbootMode, BootSource>;

/**
 * Arms the source of the next boot. Done when the BMC reads it back; one that keeps "once" as "always" is taken as it is, and
 * whoever boots from it takes it back.
 *
 * Where images are installed from virtual media (`can.imaging`), that is what is armed, and not the network: an installer that
 * the network happens to offer would overwrite the disk before the image's own does. With the drive still empty, a machine
 * boots on from its disk.
 */
export const netboot = defineStep({
  kind: "netboot",
  needs: ["boot"],
  mayUse: ["imaging"],
  defaults: { timeout: seconds(60), maxRetries: 2 },
  parse: parsePayload.netboot,
  fromOutside: true,

  async before({ can, targets, call }) {
    const { source, lasts } = await can.boot.readBootOverride(await targets.bmc(), call);
    return { source, lasts };
  },
  async act({ payload, can, targets, call, log }) {
    const source = wantedSource(payload.mode, can.imaging !== undefined);
    await can.boot.setBootOverride(await targets.bmc(), source, call);
    log(`[netboot] next boot: ${source}${payload.profile === "" ? "" : ` (profile ${payload.profile})`}\n`);
  },
  async probe({ payload, can, targets, call }) {
    const wanted = wantedSource(payload.mode, can.imaging !== undefined);
    const { source, lasts } = await can.boot.readBootOverride(await targets.bmc(), call);
    if (source !== wanted)
      return { state: "not_done", message: `the next boot is from ${source}, not from ${wanted}`, cause: NO_EFFECT };
    const note = lasts === "always" ? "; the BMC keeps it for every boot" : "";
    return { state: "done", message: `the next boot is from ${source}${note}` };
  },
  forNextBoot: true,
  async undo({ can, targets, call }) {
    await can.boot.clearBootOverride(await targets.bmc(), call);
  },
  residue: () => "the machine may still be set to boot from another source than its disk once",
});

const wantedSource = (mode: NetbootMode, bringsItsOwnMedium: boolean): BootSource =>
  bringsItsOwnMedium && mode !== "DISK" ? "cd" : SOURCES[mode];
