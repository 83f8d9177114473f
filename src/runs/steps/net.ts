import { setTimeout as pause } from "node:timers/promises";
import { isSilence } from "../../capabilities/device-failure.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { AppError, messageOf, StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { milliseconds, minutes } from "../../kernel/time/duration.ts";
import { isHost } from "../../lifecycles/machine/endpoint.ts";
import { PARAMS } from "../model/plan/params.ts";
import { type Payloads, parsePayload } from "../model/plan/payloads.ts";
import {
  type ActingContext,
  defineStep,
  type ProbeAnswer,
  type ProbeReport,
  readProbe,
  type StepContext,
  type Undone,
} from "../model/step.ts";
import { whileUp } from "./facts/boot-id.ts";
import { silent } from "./facts/in-the-way.ts";
import {
  leaveNote,
  newMark,
  readState,
  type ScriptState,
  startDetached,
  stopDetached,
} from "./scripts/detached-script.ts";
import { APPLY_SCRIPT, ENDS } from "./scripts/net-script.ts";
import { passOnOutput } from "./scripts/script-output.ts";

type Acting = ActingContext<Payloads["net"], { readonly mark: string }, "exec">;

const ROLLBACK = { least: 5, usual: 60, most: 600 } as const;
const CONFIRMED = "the network change was confirmed before it could be reverted, and is in force";
const CHANGED_SINCE =
  "the machine's network settings were changed by somebody else during the network change, and are left as they made them";
const UNDO_LOOKS_EVERY = milliseconds(500);

/**
 * Changes network settings with netplan. Done when the machine was reached where it is to be reached afterwards, after the change
 * was applied, and has been told so. Params: `action` (reconfigure), `netplan` (the settings, as YAML; without, those that are there
 * are applied anew), `ssh_address` (where it answers afterwards, if elsewhere) and `rollback_seconds` (60). Params of the run come
 * before those of the plan.
 */
export const net = defineStep({
  kind: "net",
  needs: ["exec"],
  defaults: { timeout: minutes(2), maxRetries: 1 },
  interrupts: true,
  parse: parseNet,
  takesParams: withParams,

  async before(context) {
    settingsOf(context);
    return { mark: newMark() };
  },

  async act(context: Acting) {
    const { evidence, can, targets, call, log } = context;
    const params = settingsOf(context);
    const script = { mark: evidence.mark, exec: can.exec, ssh: await targets.ssh(), call, asRoot: true } as const;
    const env = { NET_CONFIG: params.netplan ?? "", NET_ROLLBACK: params.rollback_seconds ?? String(ROLLBACK.usual) };
    await startDetached(script, { text: APPLY_SCRIPT, env });
    log(`[net] applying; the machine reverts it by itself unless it is reached within ${env.NET_ROLLBACK} s\n`);
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    const [before, after] = await placesOf(context);
    const there = await lookFrom(context, after, "confirm");
    if (there !== undefined) return readProbe(there).state === "done" ? moved(context, there, after) : there;
    // Where it was before it only tells how it went: being reached there proves nothing of the change.
    const here = after.address === before.address ? undefined : await lookFrom(context, before, "only look");
    return (
      here ?? {
        state: "unknown",
        message: `waiting for the machine to answer at ${after.address}`,
        cause: silent("ssh"),
      }
    );
  },

  /**
   * The machine reverts it as soon as it gets the command. Until its script has ended that counts for more than having been confirmed;
   * once it has ended so, the change stays, and whoever comes next must find the machine where it is.
   */
  async undo(context: Acting): Promise<Undone | undefined> {
    const [before, after] = await placesOf(context);
    const places = before.address === after.address ? [before] : [after, before];
    for (;;) {
      const state = await stopFrom(context, places);
      if (state !== undefined && state.is !== "running") return afterStop(context, state, after);
      await pauseUnlessStopped(context, state === undefined);
    }
  },
  insideSystem: true,
  residue: () => "the network change may be in force; unless it was confirmed, the machine takes it back by itself",
});

/** Where the machine is to be reached before the change, and where after it. */
async function placesOf(context: Acting): Promise<readonly [before: SshTarget, after: SshTarget]> {
  const before = await context.targets.ssh();
  return [before, { ...before, address: settingsOf(context).ssh_address ?? before.address }];
}

/** By whichever address it answers first: one of them may lead nowhere, and waiting for it would take all the time there is. */
async function stopFrom(context: Acting, places: readonly SshTarget[]): Promise<ScriptState | undefined> {
  const { evidence, can, call } = context;
  const enough = new AbortController();
  const signal = AbortSignal.any([call.signal, enough.signal]);
  const asked = places.map(async (ssh) => {
    const script = { mark: evidence.mark, exec: can.exec, ssh, call: { ...call, signal }, asRoot: true } as const;
    return { script, state: await stopDetached(script) };
  });
  try {
    const { script, state } = await Promise.any(asked);
    if (state.is !== "absent") await whileUp(() => passOnOutput({ ...script, call }, context, state));
    return state;
  } catch (error) {
    const failures: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
    // Somebody else may answer at one of them: as long as the other one is silent, the machine may still come up there.
    if (!failures.some(isSilence)) throw failures[0];
    return undefined;
  } finally {
    enough.abort();
  }
}

async function pauseUnlessStopped({ call, payload }: Acting, isSilent: boolean): Promise<void> {
  const { rollback_seconds = String(ROLLBACK.usual) } = payload.params;
  try {
    await pause(UNDO_LOOKS_EVERY, undefined, { signal: call.signal });
  } catch (error) {
    const why = isSilent
      ? `the machine does not answer; it takes the change back by itself within ${rollback_seconds} s, unless that was confirmed`
      : "the machine has got the command, and is still at it";
    if (!isSilent) throw new StepFailure("not_done_in_time", why, { cause: error });
    throw new StepFailure("unreachable", why, { cause: error, facts: { at: "ssh" } });
  }
}

function afterStop(context: Acting, state: ScriptState, after: SshTarget): Undone | undefined {
  if (state.is === "cut_off") throw new StepFailure("net_unclear", WENT_DOWN);
  if (state.is !== "ended") return undefined;
  if (state.code === ENDS.notReverted) throw new StepFailure("net_unclear", NOT_REVERTED);
  if (state.code === ENDS.notOurs) return { stays: CHANGED_SINCE };
  if (state.code !== 0) return undefined;
  const report = moved(context, { state: "done", message: CONFIRMED }, after);
  return { stays: report.message ?? CONFIRMED, ...(report.facts && { facts: report.facts }) };
}

/** Undefined when the machine does not answer there. */
async function lookFrom(
  context: Acting,
  ssh: SshTarget,
  what: "confirm" | "only look",
): Promise<ProbeAnswer | undefined> {
  const { evidence, can, call } = context;
  const script = { mark: evidence.mark, exec: can.exec, ssh, call, asRoot: true } as const;
  const state = await whileUp(async () => {
    const seen = await readState(script);
    if (seen.is === "running" && what === "confirm") await leaveNote(script, "confirmed", "applied");
    if (seen.is !== "absent") await passOnOutput(script, context, seen);
    return seen;
  });
  if (state === undefined) return undefined;
  return judgeChange(state, `the change is in force and confirmed from ${ssh.address}`);
}

/** Whatever comes after reaches the machine where it is now; its owner's word stays as it is until they change it. */
function moved({ machine }: Acting, answer: ProbeAnswer, { address }: SshTarget): ProbeReport {
  const report = readProbe(answer);
  const from = machine.spec.ssh?.address ?? address;
  if (address === from) return { ...report, facts: { sshMoved: null } };
  const next = `; it is reached there from now on: give spec.ssh_endpoint of ${machine.id} its new address`;
  return { ...report, message: `${report.message ?? ""}${next}`, facts: { sshMoved: { from, to: address } } };
}

/** Those of the plan, and over them what the caller of StartRun gave under the same names. */
function settingsOf({ payload, params }: StepContext<Payloads["net"], "exec">): Payloads["net"]["params"] {
  try {
    return withParams(payload, params).params;
  } catch (error) {
    throw new StepFailure("invalid_input", messageOf(error), { cause: error });
  }
}

function withParams(
  payload: Payloads["net"],
  params: Readonly<Record<string, string>>,
  timeoutSeconds?: number,
): Payloads["net"] {
  const given = Object.entries(params).filter(([name]) => PARAMS.net.some((known) => known === name));
  const all = { rollback_seconds: usualRollback(timeoutSeconds), ...payload.params, ...Object.fromEntries(given) };
  return parseNet({ params: all }, "", timeoutSeconds);
}

/** A step that is given little time takes its change back in half of it. */
const usualRollback = (timeoutSeconds: number = Number.POSITIVE_INFINITY): string =>
  String(timeoutSeconds > ROLLBACK.usual ? ROLLBACK.usual : Math.max(ROLLBACK.least, Math.floor(timeoutSeconds / 2)));

const WENT_DOWN =
  "the machine went down under the network change: whether it is in force must be looked at (the former settings lie beside 90-millwright.yaml)";
const NOT_REVERTED =
  "the network change could not be reverted, since its file could not be written: the former settings lie beside it";

function judgeChange(state: ScriptState, done: string): ProbeAnswer {
  switch (state.is) {
    case "absent":
      return "not_done";
    case "running":
      return { state: "in_progress", message: "the change is being applied and confirmed" };
    case "cut_off":
      throw new StepFailure("net_unclear", WENT_DOWN);
    case "ended":
      return judgeEnd(state.code, done);
  }
}

function judgeEnd(code: number, done: string): ProbeAnswer {
  switch (code) {
    case 0:
      return { state: "done", message: done };
    case ENDS.refused:
    case ENDS.reverted:
      throw new StepFailure(
        code === ENDS.refused ? "net_refused" : "net_reverted",
        "the network change was reverted: it could not be applied, or the machine was not reached afterwards",
      );
    case ENDS.notOurs:
      throw new StepFailure("changed_meanwhile", CHANGED_SINCE, { disposition: "fail" });
    case ENDS.notReverted:
      throw new StepFailure("net_unclear", NOT_REVERTED);
    default:
      throw new StepFailure(
        "script_failed",
        `the network change was not made: its script ended with exit code ${code}`,
        {
          facts: { exit_code: code },
        },
      );
  }
}

function parseNet(payload: JsonObject, field: string, timeoutSeconds?: number): Payloads["net"] {
  const { params } = parsePayload.net(payload, field);
  // Params of a run stand in the request itself, and in no step.
  const at = (name: string) => (field === "" ? `params.${name}` : `${field}.params.${name}`);
  const refuse = (name: string, why: string) =>
    new AppError("invalid_argument", `${at(name)}: ${why}`, { field: at(name) });
  const unknown = Object.keys(params).find((name) => !PARAMS.net.some((known) => known === name));
  if (unknown !== undefined) throw refuse(unknown, `is not known; known: ${PARAMS.net.join(", ")}`);
  const { action = "reconfigure", ssh_address, rollback_seconds = usualRollback(timeoutSeconds) } = params;
  if (action !== "reconfigure")
    throw refuse("action", `must be reconfigure, got ${JSON.stringify(action.slice(0, 80))}`);
  if (ssh_address !== undefined && (!isHost(ssh_address) || ssh_address.includes("%")))
    throw refuse("ssh_address", "must be a host name or an address, without a port");
  const seconds = /^\d{1,4}$/.test(rollback_seconds) ? Number(rollback_seconds) : Number.NaN;
  if (!(seconds >= ROLLBACK.least && seconds <= ROLLBACK.most))
    throw refuse("rollback_seconds", `must be a whole number from ${ROLLBACK.least} to ${ROLLBACK.most}`);
  // Otherwise the next attempt would begin while this one may still be confirmed.
  if (timeoutSeconds !== undefined && seconds >= timeoutSeconds) {
    const rule = `must be less than the step's timeout of ${timeoutSeconds} s: give less, or the step more timeout_seconds`;
    throw refuse("rollback_seconds", `${seconds} s ${rule}`);
  }
  return { params };
}
