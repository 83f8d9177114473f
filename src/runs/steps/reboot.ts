import type { BootProgress, BootSeen } from "../../capabilities/computer-system.ts";
import { type DeviceFailure, isSilence, isStranger } from "../../capabilities/device-failure.ts";
import { AppError, causeOf, StepFailure } from "../../kernel/errors.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import type { Payloads } from "../model/plan/payloads.ts";
import { parsePayload } from "../model/plan/payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, type ProbeReport, type StepContext } from "../model/step.ts";
import { readBootId, whileUp } from "./facts/boot-id.ts";
import { NO_EFFECT, silent } from "./facts/in-the-way.ts";
import { beginReset, carryOnReset, probeReset, proofOfReset, type ResetProof } from "./reboot-by-power.ts";

/** Which boot was there before, by the system's own id where it answers, and by what the BMC tells. */
type Evidence = {
  readonly bootId: string | null;
  readonly lastReset: string | null;
  /** Where neither is known: what proves the reset instead. */
  readonly proof?: ResetProof;
};
type Used = "reset" | "power" | "system" | "exec";
type Context = StepContext<Payloads["reboot"], never, Used>;
type Acting = ActingContext<Payloads["reboot"], Evidence, never, Used>;

/** The system goes down after the answer has left: else the command would look as if it had failed. */
const REBOOT_SCRIPT = "systemctl reboot\n";
const REBOOT_FORCED_SCRIPT = "sync\nsystemctl reboot --force\n";

/**
 * Reboots the machine. Done when its boot id differs from the one noted before; "power is on" proves nothing. A machine without
 * SSH is believed when its BMC tells of a later reset and of a system that runs; so is one whose system does not let us in, and is
 * to be replaced. Where nothing tells one boot from the next, a forced reset is proved by the power (`reboot-by-power.ts`).
 */
export const reboot = defineStep({
  kind: "reboot",
  needs: [],
  mayUse: ["reset", "power", "system", "exec"],
  alsoNeeds: ({ mode }) => (mode === "bmc" ? ["reset", "system"] : ["exec"]),
  defaults: { timeout: minutes(5), maxRetries: 1 },
  reboots: true,
  fromOutside: true,
  parse: parsePayload.reboot,
  takesParams: withForce,

  async before(context: Context): Promise<Evidence> {
    // What it cannot do without is missed by its own name, and not as a proof that cannot be had.
    await (context.payload.mode === "bmc" ? context.targets.bmc() : context.targets.ssh());
    const outside = await seenOutside(context);
    const inside = await seenInside(context);
    const evidence = { bootId: inside.bootId ?? null, lastReset: outside?.boot?.lastReset ?? null };
    if (evidence.bootId !== null || evidence.lastReset !== null) return evidence;
    if (outside?.failure !== undefined) throw outside.failure;
    const { payload, isReplacedNext } = context;
    if (isForcedByBmc(payload) || (isReplacedNext && payload.mode === "bmc"))
      return { ...evidence, proof: await proofOfReset(context) };
    if (inside.stranger !== undefined) throw inside.stranger;
    throw new StepFailure(
      "no_evidence",
      "a reboot could not be proved: the machine does not answer over SSH, and its BMC does not report when it was last reset; the param force=true switches it off and on, which its power state proves",
    );
  },

  async act(context: Acting) {
    const {
      payload: { mode, force },
      can,
      targets,
      call,
      log,
      machine,
      evidence,
      isReplacedNext,
    } = context;
    if (evidence.proof !== undefined) return beginReset(evidence.proof, context);
    if (mode === "bmc") {
      if (can.reset === undefined)
        throw new StepFailure("not_on_this_server", "this machine's provider cannot reset it", {
          disposition: "fail",
          facts: { what: "capability", name: "reset" },
        });
      const progress = await progressWithoutSystem(context);
      const isComingUp = progress === "starting" || progress === "booting";
      // Of a system that hangs, is half installed or is not there at all nobody waits for the going down, if another is to follow.
      const mayHang = machine.spec.ssh !== null && evidence.bootId === null && progress === "running";
      const isNobodysLoss = isReplacedNext && (mayHang || progress === "unknown");
      const way = force || isComingUp || isNobodysLoss ? "forced" : "graceful";
      await can.reset.resetPower(await targets.bmc(), way, call);
      if (isComingUp && !force)
        log(
          `[reboot] no system is up yet to go down by itself (the BMC says: ${progress}), so that it is reset at once\n`,
        );
      else if (isNobodysLoss && !force)
        log("[reboot] no system of ours answers, and another is to replace what is there: it is reset at once\n");
      log(
        progress === "off"
          ? "[reboot] the machine was off: the BMC accepted to switch it on\n"
          : `[reboot] the BMC accepted a ${way} restart\n`,
      );
      return;
    }
    if (can.exec === undefined)
      throw new StepFailure("not_on_this_server", "this machine's provider runs nothing on it", {
        disposition: "fail",
        facts: { what: "capability", name: "exec" },
      });
    const script = force ? REBOOT_FORCED_SCRIPT : REBOOT_SCRIPT;
    // A machine that is gone before it has answered obeyed all the same; the probe tells.
    const ssh = await targets.ssh();
    const exit = await whileUp(async () =>
      can.exec?.run(ssh, { script, env: {}, timeout: seconds(30), asRoot: true }, call),
    );
    if (exit !== undefined && exit.code !== null && exit.code !== 0)
      throw new StepFailure("script_failed", `the system refused to reboot: exit code ${exit.code}`, {
        facts: { script: "systemctl reboot", exit_code: exit.code },
      });
    log("[reboot] the system was commanded to reboot\n");
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    const { evidence } = context;
    if (evidence.proof !== undefined) return probeReset(evidence.proof, context);
    const outside = await seenOutside(context);
    const lastReset = outside?.boot?.lastReset ?? null;
    const wasReset = lastReset !== null && evidence.lastReset !== null && lastReset !== evidence.lastReset;
    if (evidence.bootId === null) return judgedFromOutside(outside, wasReset, context);
    const { bootId, stranger } = await seenInside(context);
    if (stranger !== undefined && evidence.lastReset === null) throw stranger;
    if (stranger !== undefined) return judgedFromOutside(outside, wasReset, context);
    if (bootId === undefined) {
      const isDown = context.payload.mode === "bmc" && outside?.boot?.progress === "off";
      return { state: isDown ? "halfway" : "in_progress", ...waiting(outside) };
    }
    if (bootId !== evidence.bootId) return { state: "done", message: `rebooted: boot id ${bootId}`, facts: { bootId } };
    return wasReset
      ? {
          state: "in_progress",
          message: "the BMC reports a reset, but the previous system still answers",
          cause: NO_EFFECT,
        }
      : { state: "not_done", message: "the previous system still runs", cause: NO_EFFECT };
  },

  /** A BMC that cannot restart a system gently has it go down, and no more; and any may be left off by who died in between. */
  async carryOn(context: Acting) {
    const { can, targets, call, log, evidence } = context;
    if (evidence.proof !== undefined) return carryOnReset(context);
    const told = await can.power?.setPower(await targets.bmc(), "on", call);
    if (told?.commanded) log("[reboot] the system is down: the BMC was commanded to switch the machine on\n");
  },

  residue: ({ mode, force }) =>
    mode === "bmc" && !force
      ? "the machine may go down later, and then restart or stay off: the request cannot be undone"
      : "the machine may reboot later: the request cannot be undone",
});

/** A system that hangs never hears that it is to go down; whether it does is known to who starts the run, and not to the plan. */
function withForce(payload: Payloads["reboot"], { force }: Readonly<Record<string, string>>): Payloads["reboot"] {
  if (force === undefined) return payload;
  if (force === "true" || force === "false") return { ...payload, force: force === "true" };
  const field = "params.force";
  throw new AppError("invalid_argument", `${field}: must be true or false, got ${JSON.stringify(force.slice(0, 80))}`, {
    field,
  });
}

/**
 * How far a machine is of which no system was seen. One that is on its way up cannot hear that it is to go down, and the request
 * would be lost; one that is off is switched on by it. A BMC that does not tell says nothing against a system that runs.
 */
const progressWithoutSystem = async (context: Acting): Promise<BootProgress | undefined> =>
  context.evidence.bootId === null ? (await seenOutside(context))?.boot?.progress : undefined;

async function judgedFromOutside(
  outside: Outside | undefined,
  wasReset: boolean,
  context: Context,
): Promise<ProbeAnswer> {
  const { isReplacedNext, machine, payload } = context;
  if (outside?.boot === undefined)
    return {
      state: "unknown",
      ...(outside?.failure && { message: outside.failure.message, cause: causeOf(outside.failure) }),
    };
  const { progress, lastReset } = outside.boot;
  if (!wasReset) return { state: "not_done", message: "the BMC reports no reset yet", cause: NO_EFFECT };
  if (progress === "running") return { state: "done", message: `reset at ${lastReset}, and the system runs` };
  // On an empty disk nothing ever comes up.
  if (isReplacedNext && progress !== "off")
    return { state: "done", message: `reset at ${lastReset}; what comes up is to be replaced` };
  const inside = progress === "unknown" ? await seenInside(context) : {};
  if (inside.bootId !== undefined)
    return {
      state: "done",
      message: `reset at ${lastReset}: boot id ${inside.bootId}`,
      facts: { bootId: inside.bootId },
    };
  // A BMC that never reports how far a boot is keeps nobody waiting for it, where nothing else could tell.
  if (progress === "unknown" && (machine.spec.ssh === null || payload.force))
    return { state: "done", message: `reset at ${lastReset}; its BMC does not report whether a system runs` };
  return { state: "in_progress", ...waiting(outside) };
}

function waiting(outside: Outside | undefined): Pick<ProbeReport, "message" | "cause"> {
  const said = outside?.boot === undefined ? outside?.failure?.message : `the BMC says: ${outside.boot.progress}`;
  const message = `waiting for the system to answer${said === undefined ? "" : ` (${said})`}`;
  // Where both are silent, the BMC is what to see to first: without it nobody can do anything about the system.
  return { message, cause: outside?.failure ? causeOf(outside.failure) : silent("ssh", outside?.boot?.progress) };
}

/** Which boot the system tells of, or why whoever answers there is not asked. Neither while nobody answers. */
interface Inside {
  readonly bootId?: string;
  readonly stranger?: DeviceFailure;
}

async function seenInside(context: Context): Promise<Inside> {
  const { machine, can, targets, call, isReplacedNext, payload } = context;
  if (machine.spec.ssh === null || can.exec === undefined) return {};
  try {
    const bootId = await readBootId(can.exec, await targets.ssh(), call);
    return bootId === undefined ? {} : { bootId };
  } catch (error) {
    // A system that an installation left half done, or of which nobody has the key, is what a repave is for; and who forces a reset
    // through the BMC does not ask it.
    if ((isReplacedNext || isForcedByBmc(payload)) && isStranger(error)) return { stranger: error };
    throw error;
  }
}

const isForcedByBmc = ({ mode, force }: Payloads["reboot"]): boolean => mode === "bmc" && force;

/** What the BMC tells, or why it tells nothing now. Undefined where there is none to ask. */
interface Outside {
  readonly boot?: BootSeen;
  readonly failure?: DeviceFailure;
}

async function seenOutside({ machine, can, targets, call }: Context): Promise<Outside | undefined> {
  if (machine.spec.bmc === null || can.system === undefined) return undefined;
  const { system: inspect } = can;
  try {
    return { boot: await inspect.readBoot(await targets.bmc(), call) };
  } catch (error) {
    if (isSilence(error)) return { failure: error };
    throw error;
  }
}
