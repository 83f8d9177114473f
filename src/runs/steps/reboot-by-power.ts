import type { PowerControl } from "../../capabilities/power-control.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Acted, ActingContext, ProbeAnswer, StepContext } from "../model/step.ts";
import { whileUp } from "./facts/boot-id.ts";
import { NO_EFFECT, silent } from "./facts/in-the-way.ts";

/**
 * A reset of a machine where nothing tells one boot from the next: no system answers, and the BMC does not report resets.
 *
 * power: the machine is switched off, read off, switched on and read on. That it was read off is the receipt, written before it is
 * switched on: "on" proves nothing without it. none: not even its power can be read, so that nothing ever proves the reset. It is
 * sent once, and not again where the process died over it.
 */
export type ResetProof = "power" | "none";

type Used = "reset" | "power";
type Context = StepContext<unknown, never, Used>;
type Acting = ActingContext<unknown, unknown, never, Used>;

/** What a machine that was read off has as its receipt, and one that was sent a reset that nothing proves. */
const READ_OFF = { readOff: true };
const SENT = { sent: true };

export async function proofOfReset({ can: { power }, targets, call }: Context): Promise<ResetProof> {
  if (power === undefined) return "none";
  return (await power.readPower(await targets.bmc(), call)) === "unknown" ? "none" : "power";
}

export async function beginReset(proof: ResetProof, { can, targets, call, log }: Acting): Promise<Acted | undefined> {
  if (proof === "power") {
    await powerOf(can).setPower(await targets.bmc(), "off", call);
    log(
      "[reboot] nothing tells one boot from the next, so that the machine is switched off, and on again when it is off\n",
    );
    return undefined;
  }
  if (can.reset === undefined) throw cannot("reset");
  await can.reset.resetPower(await targets.bmc(), "forced", call);
  log("[reboot] the BMC accepted a forced restart, which nothing can prove: neither SSH nor the BMC tells of it\n");
  return { receipt: SENT };
}

export async function probeReset(proof: ResetProof, context: Acting): Promise<ProbeAnswer> {
  return proof === "power" ? probePower(context) : probeUnproven(context);
}

async function probePower({ can, targets, call, receipt }: Acting): Promise<ProbeAnswer> {
  const bmc = await targets.bmc();
  const power = await whileUp(() => powerOf(can).readPower(bmc, call));
  if (power === undefined) return { state: "unknown", message: "the BMC does not answer", cause: silent("bmc") };
  const wasReadOff = receipt?.readOff === true;
  if (power === "off")
    return {
      state: "halfway",
      message: wasReadOff ? "the machine is off, and is to be switched on" : "the machine is off",
    };
  if (power === "on")
    return wasReadOff
      ? { state: "done", message: "reset: its BMC reported it off, and then on" }
      : { state: "not_done", message: "the BMC reports the machine on, and not off yet", cause: NO_EFFECT };
  if (power === "unknown")
    return { state: "unknown", message: "the BMC does not report its power now", cause: NO_EFFECT };
  return { state: "in_progress", message: `the BMC reports the machine ${power}`, cause: NO_EFFECT };
}

/** First that it was read off is on record, and only then it is switched on. */
export async function carryOnReset({ can, targets, call, log, receipt }: Acting): Promise<Acted | undefined> {
  if (receipt?.readOff !== true) return { receipt: READ_OFF };
  const { commanded } = await powerOf(can).setPower(await targets.bmc(), "on", call);
  if (commanded) log("[reboot] the BMC reported the machine off, and was commanded to switch it on\n");
  return undefined;
}

function probeUnproven({ receipt, hasNotBegun, actingAt }: Acting): ProbeAnswer {
  if (actingAt == null || hasNotBegun === true) return "not_done";
  if (receipt?.sent !== true)
    return {
      state: "unknown",
      message: "whether the BMC heard of the restart cannot be found out, and it is not sent again: see to the machine",
      cause: NO_EVIDENCE,
    };
  throw new StepFailure(
    NO_EVIDENCE.code,
    "the BMC accepted a forced restart, which nothing can prove: no system answers over SSH, and the BMC reports neither resets nor power; see to the machine",
    { disposition: "fail" },
  );
}

const NO_EVIDENCE = { code: "no_evidence" } as const;

function powerOf({ power }: Partial<{ power: PowerControl }>): PowerControl {
  if (power === undefined) throw cannot("power");
  return power;
}

/** The replica that began had it. */
const cannot = (name: string): StepFailure =>
  new StepFailure("not_on_this_server", `this server's provider cannot do ${name}`, {
    facts: { what: "capability", name },
  });
