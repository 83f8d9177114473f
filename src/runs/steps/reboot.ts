import { type DeviceFailure, isSilence } from "../../capabilities/device-failure.ts";
import type { BootProgress, BootSeen } from "../../capabilities/machine-inspect.ts";
import { minutes, seconds } from "../../kernel/duration.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Payloads } from "../payloads.ts";
import { parsePayload } from "../payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, type StepContext } from "../step.ts";
import { readBootId, whileUp } from "./boot-id.ts";

/** Which boot was there before, by the system's own id where it answers, and by what the BMC tells. */
type Evidence = { readonly bootId: string | null; readonly lastReset: string | null };
type Used = "reset" | "power" | "machine" | "exec";
type Context = StepContext<Payloads["reboot"], never, Used>;
type Acting = ActingContext<Payloads["reboot"], Evidence, never, Used>;

/** The system goes down after the answer has left: else the command would look as if it had failed. */
const REBOOT_SCRIPT = "systemctl reboot\n";
const REBOOT_FORCED_SCRIPT = "sync\nsystemctl reboot --force\n";

/**
 * Reboots the machine. Done when its boot id differs from the one noted before; "power is on" proves nothing. A machine without
 * SSH is believed when its BMC tells of a later reset and of a system that runs.
 */
export const reboot = defineStep({
  kind: "reboot",
  needs: [],
  mayUse: ["reset", "power", "machine", "exec"],
  alsoNeeds: ({ mode }) => (mode === "bmc" ? ["reset", "machine"] : ["exec"]),
  defaults: { timeout: minutes(5), maxRetries: 1 },
  reboots: true,
  parse: parsePayload.reboot,

  async before(context: Context): Promise<Evidence> {
    // What it cannot do without is missed by its own name, and not as a proof that cannot be had.
    await (context.payload.mode === "bmc" ? context.targets.bmc() : context.targets.ssh());
    const outside = await seenOutside(context);
    const evidence = { bootId: (await seenInside(context)) ?? null, lastReset: outside?.boot?.lastReset ?? null };
    if (evidence.bootId !== null || evidence.lastReset !== null) return evidence;
    // Who is why is named: "nothing can be noted" would only be what follows from it.
    if (outside?.failure !== undefined) throw outside.failure;
    throw new StepFailure(
      "retry",
      "nothing can be noted by which a reboot could be proved: the machine does not answer over SSH, and its BMC does not tell when it was last reset",
    );
  },

  async act(context: Acting): Promise<void> {
    const {
      payload: { mode, force },
      can,
      targets,
      call,
      log,
    } = context;
    if (mode === "bmc") {
      if (can.reset === undefined) throw new StepFailure("fail", "this machine's provider cannot reset it");
      const progress = await progressWithoutSystem(context);
      const isComingUp = progress === "starting" || progress === "booting";
      const way = force || isComingUp ? "forced" : "graceful";
      await can.reset.resetPower(await targets.bmc(), way, call);
      if (isComingUp && !force)
        log(
          `[reboot] no system is up yet to go down by itself (the BMC says: ${progress}), so that it is reset at once\n`,
        );
      log(
        progress === "off"
          ? "[reboot] the machine was off: the BMC accepted to switch it on\n"
          : `[reboot] the BMC accepted a ${way} restart\n`,
      );
      return;
    }
    if (can.exec === undefined) throw new StepFailure("fail", "this machine's provider runs nothing on it");
    const script = force ? REBOOT_FORCED_SCRIPT : REBOOT_SCRIPT;
    // A machine that is gone before it has answered obeyed all the same; the probe tells.
    const ssh = await targets.ssh();
    const exit = await whileUp(async () => can.exec?.run(ssh, { script, env: {}, timeout: seconds(30) }, call));
    if (exit !== undefined && exit.code !== null && exit.code !== 0)
      throw new StepFailure("retry", `the system refused to reboot: exit code ${exit.code}`);
    log("[reboot] the system was told to reboot\n");
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    const { evidence } = context;
    const outside = await seenOutside(context);
    const lastReset = outside?.boot?.lastReset ?? null;
    const wasReset = lastReset !== null && evidence.lastReset !== null && lastReset !== evidence.lastReset;
    if (evidence.bootId === null) return judgedFromOutside(outside, wasReset);
    const bootId = await seenInside(context);
    if (bootId === undefined) {
      const isDown = context.payload.mode === "bmc" && outside?.boot?.progress === "off";
      return { state: isDown ? "halfway" : "in_progress", message: waiting(outside) };
    }
    if (bootId !== evidence.bootId)
      return { state: "done", message: `booted anew: boot id ${bootId}`, facts: { bootId } };
    return wasReset
      ? { state: "in_progress", message: "the BMC tells of a reset, but the system of before still answers" }
      : { state: "not_done", message: "the system of before still runs" };
  },

  /** A BMC that cannot restart a system gently has it go down, and no more; and any may be left off by who died in between. */
  async carryOn({ can, targets, call, log }: Acting): Promise<void> {
    const told = await can.power?.setPower(await targets.bmc(), "on", call);
    if (told?.commanded) log("[reboot] the system is down: the BMC was told to switch the machine on\n");
  },

  residue: ({ mode, force }) =>
    mode === "bmc" && !force
      ? "the machine may go down later, and then restart or stay off: the request for it cannot be taken back"
      : "the machine may reboot later: the request for it cannot be taken back",
});

/**
 * How far a machine is of which no system was seen. One that is on its way up cannot hear that it is to go down, and the request
 * would be lost; one that is off is switched on by it. A BMC that does not tell says nothing against a system that runs.
 */
const progressWithoutSystem = async (context: Acting): Promise<BootProgress | undefined> =>
  context.evidence.bootId === null ? (await seenOutside(context))?.boot?.progress : undefined;

function judgedFromOutside(outside: Outside | undefined, wasReset: boolean): ProbeAnswer {
  if (outside?.boot === undefined) return { state: "unknown", message: outside?.failure?.message ?? "" };
  const { boot } = outside;
  if (!wasReset) return { state: "not_done", message: "the BMC tells of no reset yet" };
  return boot.progress === "running"
    ? { state: "done", message: `reset at ${boot.lastReset}, and the system runs` }
    : { state: "in_progress", message: waiting(outside) };
}

function waiting(outside: Outside | undefined): string {
  const said = outside?.boot === undefined ? outside?.failure?.message : `the BMC says: ${outside.boot.progress}`;
  return `waiting for the system to answer${said === undefined ? "" : ` (${said})`}`;
}

const seenInside = async ({ machine, can, targets, call }: Context): Promise<string | undefined> =>
  machine.spec.ssh === null || can.exec === undefined ? undefined : readBootId(can.exec, await targets.ssh(), call);

/** What the BMC tells, or why it tells nothing now. Undefined where there is none to ask. */
interface Outside {
  readonly boot?: BootSeen;
  readonly failure?: DeviceFailure;
}

async function seenOutside({ machine, can, targets, call }: Context): Promise<Outside | undefined> {
  if (machine.spec.bmc === null || can.machine === undefined) return undefined;
  const { machine: inspect } = can;
  try {
    return { boot: await inspect.readBoot(await targets.bmc(), call) };
  } catch (error) {
    if (isSilence(error)) return { failure: error };
    throw error;
  }
}
