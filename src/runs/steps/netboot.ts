import type { BootSource } from "../../capabilities/boot-device.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { type NetbootMode, type Payloads, parsePayload } from "../model/plan/payloads.ts";
import { defineStep, type StepContext } from "../model/step.ts";
import { NO_EFFECT } from "./facts/in-the-way.ts";

const SOURCES = { PXE: "pxe", HTTP: "http", DISK: "disk" } as const satisfies Record<NetbootMode, BootSource>;
type Context = StepContext<Payloads["netboot"], "boot">;

/**
 * Arms the source of the next boot: exactly the one that it names. Done when the BMC reads it back; one that keeps "once" as "always"
 * is accepted as it is, and the step that boots from it clears it.
 *
 * Before an installation from a medium it arms nothing, and says so. A machine that booted from the network first could be
 * overwritten by an installer that the network happens to offer; and the medium is armed by the step that inserts it, since some BMCs
 * refuse an override to a drive that is empty.
 */
export const netboot = defineStep({
  kind: "netboot",
  needs: ["boot"],
  defaults: { timeout: seconds(60), maxRetries: 2 },
  parse: parsePayload.netboot,
  refersTo: ({ profile }) => (profile === "" ? [] : [{ kind: "workflow", ref: profile }]),
  fromOutside: true,

  async before({ can, targets, call }) {
    const { source, lasts } = await can.boot.readBootOverride(await targets.bmc(), call);
    return { source, lasts };
  },
  async act(context) {
    const { payload, can, targets, call, log } = context;
    const source = SOURCES[payload.mode];
    await can.boot.setBootOverride(await targets.bmc(), source, call);
    log(`[netboot] next boot: ${source}${await noteOnProfile(context)}\n`);
    return undefined;
  },
  async probe(context) {
    const { payload, can, targets, call, log } = context;
    const medium = await mediumInstalledNext(context);
    if (medium !== null) {
      const message = `nothing is armed: ${medium} is installed from a medium, which is armed when it is inserted`;
      log(`[netboot] ${message}\n`);
      return { state: "done", message };
    }
    const wanted = SOURCES[payload.mode];
    const { source, lasts } = await can.boot.readBootOverride(await targets.bmc(), call);
    if (source !== wanted)
      return { state: "not_done", message: `the next boot is from ${source}, not from ${wanted}`, cause: NO_EFFECT };
    const note = lasts === "always" ? "; the BMC keeps it for every boot" : "";
    return { state: "done", message: `the next boot is from ${source}${note}` };
  },
  forNextBoot: true,
  async undo({ can, targets, call }) {
    await can.boot.clearBootOverride(await targets.bmc(), call);
    return undefined;
  },
  residue: () => "the machine may still be set to boot from another source than its disk once",
});

/** The image that a later step installs from a medium; null when none does, or when the disk is what is to be booted. */
async function mediumInstalledNext({ payload, targets, installsNext }: Context): Promise<string | null> {
  if (installsNext === null || payload.mode === "DISK") return null;
  return (await targets.image(installsNext)).kind === "netboot" ? null : installsNext;
}

/** What becomes of the profile: the workflow that an image names is what is installed. */
async function noteOnProfile({ payload: { profile }, targets, installsNext }: Context): Promise<string> {
  if (profile === "") return "";
  if (installsNext === null)
    return `; no step of the plan installs profile ${profile}: the state of the node decides what it boots`;
  const { location, kind } = await targets.image(installsNext);
  if (kind === "netboot" && location !== profile)
    return `; profile ${profile} is not used, since image ${installsNext} is installed by workflow ${location}`;
  return ` (profile ${profile})`;
}
