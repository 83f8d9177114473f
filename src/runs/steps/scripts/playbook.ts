import type { Playbooks } from "../../../capabilities/local/playbooks.ts";
import type { SshTarget } from "../../../capabilities/ssh-target.ts";
import { streamOf } from "../../../capabilities/stream.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import { seconds } from "../../../kernel/time/duration.ts";
import type { Payloads } from "../../model/plan/payloads.ts";
import type { Acted, ActingContext, ProbeAnswer } from "../../model/step.ts";
import { earlierNote, isIdempotent, type Runbook } from "./runbooks.ts";

/** A play goes on for a second at a time, and is ended three seconds after the last sign of life from its server. */
export const PLAY_STREAM = { to: "ssh", longestChunk: seconds(6) } as const;

type Acting = ActingContext<Payloads["ssh"], { readonly script: string }, "exec", "cluster" | "nodes" | "playbooks">;

/** What a play that has ended leaves on record. One that was interrupted leaves nothing. */
export type PlayReceipt = { readonly exit_code: number };

/** Runs a playbook on our side, with the machine as its inventory. It is done when it has ended with exit code 0. */
export async function play({ payload, machine, can, targets, call, log }: Acting, runbook: Runbook): Promise<Acted> {
  const { text, digest } = runbook;
  const { playbooks } = can;
  const name = payload.script_ref;
  if (!playbooks) throw withoutPlaybooks(name);
  log(`[ssh] ${name} (${digest.slice(0, 19)}…) started on this server${earlierNote(runbook)}\n`);
  const code = await carryOut(playbooks, await targets.ssh());
  if (code === 0) return { receipt: { exit_code: 0 } satisfies PlayReceipt };
  const how = code === null ? "was ended by a signal" : `ended with exit code ${code}`;
  const facts = { script: name, ...(code !== null && { exit_code: code }) };
  throw new StepFailure("script_failed", `${name} ${how}${earlierNote(runbook)}`, { facts });

  function carryOut(runner: Playbooks, target: SshTarget): Promise<number | null> {
    const what = { ref: name, text, machineId: machine.id, args: payload.args, onOutput: log };
    return runner.run(target, what, streamOf(call));
  }
}

const withoutPlaybooks = (name: string): StepFailure =>
  new StepFailure("not_on_this_server", `${name} is a playbook, and ansible-playbook is not installed on this server`, {
    facts: { what: "capability", name: "playbooks" },
  });

/** Nothing on the machine tells how far a play has come: only its end does, which is on record. */
export async function probePlay({ payload, receipt, targets, hasNotBegun, actingAt }: Acting): Promise<ProbeAnswer> {
  const name = payload.script_ref;
  if (receipt?.exit_code === 0) return { state: "done", message: `${name} ended with exit code 0` };
  if (hasNotBegun || !actingAt || isIdempotent(await targets.script(name))) return "not_done";
  throw new StepFailure(
    "script_failed",
    `${name} was interrupted, and may have been carried out in part; it is not repeated, since it does not say "# Idempotent: yes" at its top`,
    { disposition: "fail", facts: { script: name } },
  );
}
