import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { BootSeen } from "../../capabilities/machine-inspect.ts";
import { minutes, seconds } from "../../kernel/duration.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Payloads } from "../payloads.ts";
import { parsePayload } from "../payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, type StepContext } from "../step.ts";
import { readBootId, whileUp } from "./boot-id.ts";

/** Which boot was there before, by the system's own id where it answers, and by what the BMC tells. */
type Evidence = { readonly bootId: string | null; readonly lastReset: string | null };
type Used = "reset" | "machine" | "exec";
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
  mayUse: ["reset", "machine", "exec"],
  alsoNeeds: ({ mode }) => (mode === "bmc" ? ["reset", "machine"] : ["exec"]),
  defaults: { timeout: minutes(5), maxRetries: 1 },
  reboots: true,
  parse: parsePayload.reboot,

  async before(context: Context): Promise<Evidence> {
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

  async act({ payload: { mode, force }, can, targets, call, log }: Acting): Promise<void> {
    if (mode === "bmc") {
      if (can.reset === undefined) throw new StepFailure("fail", "this machine's provider cannot reset it");
      await can.reset.resetPower(await targets.bmc(), force ? "forced" : "graceful", call);
      log(`[reboot] the BMC accepted a ${force ? "forced" : "graceful"} restart\n`);
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
      // Where restarting means to have it go down and to turn it on again, whoever died in between has left it off; acting anew
      // turns it on. An action that is known to be done is only waited for, whatever is said here.
      const isLeftOff = context.payload.mode === "bmc" && outside?.boot?.progress === "off";
      return { state: isLeftOff ? "not_done" : "in_progress", message: waiting(outside) };
    }
    if (bootId !== evidence.bootId)
      return { state: "done", message: `booted anew: boot id ${bootId}`, facts: { bootId } };
    return wasReset
      ? { state: "in_progress", message: "the BMC tells of a reset, but the system of before still answers" }
      : { state: "not_done", message: "the system of before still runs" };
  },

  residue: () => "the machine may reboot later: the request for it cannot be taken back",
});

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
    if (error instanceof DeviceFailure && (error.reason === "unreachable" || error.reason === "busy")) {
      return { failure: error };
    }
    throw error;
  }
}
