import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { minutes } from "../../kernel/duration.ts";
import { AppError, messageOf, StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Payloads, parsePayload } from "../payloads.ts";
import {
  type ActingContext,
  defineStep,
  type ProbeAnswer,
  type ProbeReport,
  readProbe,
  type StepContext,
} from "../step.ts";
import { whileUp } from "./boot-id.ts";
import {
  DIRECTORY,
  leaveNote,
  newMark,
  OutputReader,
  readState,
  type ScriptState,
  startDetached,
} from "./detached-script.ts";

type Acting = ActingContext<Payloads["net"], { readonly mark: string }, "exec">;

const output = new OutputReader();
const REVERTED = 9;
const ROLLBACK = { least: 5, usual: 60, most: 600 } as const;
const PARAMS = ["action", "netplan", "ssh_address", "rollback_seconds"] as const;

/**
 * Applies, then waits on the machine itself to be told that it is still reached; nobody telling, it takes the change back. So a
 * change that cuts the machine off heals without anybody.
 */
const APPLY_SCRIPT = `set -u
if ! command -v netplan >/dev/null 2>&1; then
  echo "this system has no netplan, which network changes are made with" >&2
  exit 2
fi
work="${DIRECTORY}$MILLWRIGHT_MARK"
file="\${NETPLAN_DIRECTORY:-/etc/netplan}/90-millwright.yaml"
had=no
if [ -e "$file" ]; then
  cat "$file" > "$work/before"
  had=yes
fi
if [ -n "$NET_CONFIG" ]; then printf '%s\\n' "$NET_CONFIG" > "$file"; fi
if netplan apply; then
  echo yes > "$work/applied"
  waited=0
  while [ "$waited" -lt "$NET_ROLLBACK" ]; do
    if [ -e "$work/confirmed" ]; then
      echo "confirmed"
      exit 0
    fi
    sleep 1
    waited=$((waited + 1))
  done
  echo "not confirmed within $NET_ROLLBACK s: taken back" >&2
fi
if [ -n "$NET_CONFIG" ]; then
  if [ "$had" = yes ]; then cat "$work/before" > "$file"; else rm -f "$file"; fi
fi
netplan apply
exit ${REVERTED}
`;

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
  parse: parseNet,
  takesParams: withParams,

  async before(context) {
    settingsOf(context);
    return { mark: newMark() };
  },

  async act(context: Acting) {
    const { evidence, can, targets, call, log } = context;
    const params = settingsOf(context);
    const script = { mark: evidence.mark, exec: can.exec, ssh: await targets.ssh(), call };
    const env = { NET_CONFIG: params.netplan ?? "", NET_ROLLBACK: params.rollback_seconds ?? String(ROLLBACK.usual) };
    await startDetached(script, { text: APPLY_SCRIPT, env });
    log(`[net] applying; taken back by itself unless the machine is reached within ${env.NET_ROLLBACK} s\n`);
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    const before = await context.targets.ssh();
    const after = { ...before, address: settingsOf(context).ssh_address ?? before.address };
    const there = await lookFrom(context, after, "confirm");
    if (there !== undefined) return readProbe(there).state === "done" ? moved(context, there, after) : there;
    // Where it was before it only tells how it went: being reached there proves nothing of the change.
    const here = after.address === before.address ? undefined : await lookFrom(context, before, "only look");
    return here ?? { state: "unknown", message: `waiting for the machine to answer at ${after.address}` };
  },

  residue: () => "a network change that was not confirmed is taken back by the machine itself",
});

/** Undefined when the machine does not answer there. */
async function lookFrom(
  context: Acting,
  ssh: SshTarget,
  what: "confirm" | "only look",
): Promise<ProbeAnswer | undefined> {
  const { evidence, can, call } = context;
  const script = { mark: evidence.mark, exec: can.exec, ssh, call };
  const state = await whileUp(async () => {
    const seen = await readState(script);
    if (seen.is === "running" && what === "confirm") await leaveNote(script, "confirmed", "applied");
    if (seen.is !== "absent") await output.passOn(script, context);
    return seen;
  });
  if (state === undefined) return undefined;
  if (state.is === "ended" || state.is === "cut_off") output.forget(script);
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
    throw new StepFailure("fail", messageOf(error));
  }
}

function withParams(payload: Payloads["net"], params: Readonly<Record<string, string>>): Payloads["net"] {
  const given = Object.entries(params).filter(([name]) => PARAMS.some((known) => known === name));
  return parseNet({ params: { ...payload.params, ...Object.fromEntries(given) } }, "");
}

function judgeChange(state: ScriptState, done: string): ProbeAnswer {
  switch (state.is) {
    case "absent":
      return "not_done";
    case "running":
      return { state: "in_progress", message: "the change is being applied and confirmed" };
    case "cut_off":
      throw new StepFailure(
        "intervene",
        "the machine went down under the network change: whether it was taken back must be looked at",
      );
    case "ended":
      if (state.code === 0) return { state: "done", message: done };
      throw new StepFailure(
        "retry",
        state.code === REVERTED
          ? "the network change was taken back: it could not be applied, or the machine was not reached afterwards"
          : `the network change was not made: its script ended with exit code ${state.code}`,
      );
  }
}

function parseNet(payload: JsonObject, field: string): Payloads["net"] {
  const { params } = parsePayload.net(payload, field);
  // Params of a run stand in the request itself, and in no step.
  const at = (name: string) => (field === "" ? `params.${name}` : `${field}.params.${name}`);
  const refuse = (name: string, why: string) =>
    new AppError("invalid_argument", `${at(name)}: ${why}`, { field: at(name) });
  const unknown = Object.keys(params).find((name) => !PARAMS.some((known) => known === name));
  if (unknown !== undefined) throw refuse(unknown, `is not known; known: ${PARAMS.join(", ")}`);
  const { action = "reconfigure", ssh_address, rollback_seconds = String(ROLLBACK.usual) } = params;
  if (action !== "reconfigure")
    throw refuse("action", `must be reconfigure, got ${JSON.stringify(action.slice(0, 80))}`);
  if (ssh_address !== undefined && !/^[A-Za-z0-9.:-]{1,253}$/.test(ssh_address))
    throw refuse("ssh_address", "must be a host name or an address, without a port");
  const seconds = /^\d{1,4}$/.test(rollback_seconds) ? Number(rollback_seconds) : Number.NaN;
  if (!(seconds >= ROLLBACK.least && seconds <= ROLLBACK.most))
    throw refuse("rollback_seconds", `must be a whole number from ${ROLLBACK.least} to ${ROLLBACK.most}`);
  return { params };
}
