import { StepFailure } from "../../kernel/errors.ts";
import { type Payloads, parsePayload } from "../model/plan/payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, type StepContext } from "../model/step.ts";
import type { StepTargets } from "../model/targets.ts";
import { whileUp } from "./facts/boot-id.ts";
import { type DrainAnsweredBy, drainAnswer, drainAnsweredBy } from "./facts/drain-answer.ts";
import { silent } from "./facts/in-the-way.ts";
import { beginDrain, carryOnDrain, isEmptiedByCluster, probeDrain } from "./facts/node-drain.ts";
import { endDetached, newMark, readState, startDetached } from "./scripts/detached-script.ts";
import { PLAY_STREAM, play, probePlay } from "./scripts/playbook.ts";
import { causeOfExit, earlierNote, isPlaybook } from "./scripts/runbooks.ts";
import { passOnOutput } from "./scripts/script-output.ts";

/**
 * What identifies the script on the machine. `drain`: whoever answers the shipped drain check instead of it; absent in evidence of
 * servers that always ran it. `emptiedBy`: who carries out the shipped drain of a node instead of it.
 */
type Evidence = {
  readonly mark: string;
  readonly script: string;
  readonly drain?: Exclude<DrainAnsweredBy, "system">;
  readonly emptiedBy?: "cluster";
  /** A shipped script needs the rights of root. The site's own run as the account that signs in, which its people have chosen. */
  readonly asRoot?: true;
};
type Context = StepContext<Payloads["ssh"], "exec", "cluster" | "nodes" | "playbooks">;
type Acting = ActingContext<Payloads["ssh"], Evidence, "exec", "cluster" | "nodes" | "playbooks">;

/**
 * Runs one of the server's scripts on the machine. Done when it has ended with exit code 0; it is started once, and outlives us. What
 * the machine's cluster can answer or do as well is asked there (`drain-answer.ts`, `node-drain.ts`).
 */
export const ssh = defineStep({
  kind: "ssh",
  needs: ["exec"],
  mayUse: ["cluster", "nodes", "playbooks"],
  alsoNeeds: ({ script_ref }) => (isPlaybook(script_ref) ? ["playbooks"] : []),
  streams: PLAY_STREAM,
  streamsFor: ({ script_ref }) => isPlaybook(script_ref),
  parse: parsePayload.ssh,
  refersTo: ({ script_ref }) => [{ kind: "script", ref: script_ref }],

  async before(context: Context): Promise<Evidence> {
    const { digest, origin } = await context.targets.script(context.payload.script_ref);
    const drain = await drainAnsweredBy(context, digest);
    const isEmptied = await isEmptiedByCluster(context, digest);
    return {
      ...{ mark: newMark(), script: digest, ...(origin === "shipped" && { asRoot: true as const }) },
      ...(drain !== "system" && { drain }),
      ...(isEmptied && { emptiedBy: "cluster" as const }),
    };
  },

  async act(context: Acting) {
    const { payload, evidence, can, targets, call, log } = context;
    if (evidence.drain !== undefined) return;
    if (evidence.emptiedBy !== undefined) return beginDrain(context);
    const runbook = await targets.script(payload.script_ref);
    const { text, digest } = runbook;
    if (digest !== evidence.script)
      throw new StepFailure(
        "script_changed",
        `script ${payload.script_ref} is no longer the one that this run was started with`,
        {
          facts: { script: payload.script_ref },
        },
      );
    if (isPlaybook(payload.script_ref)) return play(context, runbook);
    const script = { ...scriptOf(evidence), exec: can.exec, ssh: await targets.ssh(), call };
    await startDetached(script, { text, env: payload.args });
    log(`[ssh] ${payload.script_ref} (${digest.slice(0, 19)}…) started${earlierNote(runbook)}\n`);
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    const { payload, evidence, can, targets, call } = context;
    if (evidence.drain !== undefined) return drainAnswer(evidence.drain, context);
    if (evidence.emptiedBy !== undefined) return probeDrain(context);
    if (isPlaybook(payload.script_ref)) return probePlay(context);
    const script = { ...scriptOf(evidence), exec: can.exec, ssh: await targets.ssh(), call };
    const seen = await whileUp(async () => {
      // The state first: what was written until then is then complete.
      const state = await readState(script);
      if (state.is !== "absent") await passOnOutput(script, context, state);
      return state;
    });
    const name = payload.script_ref;
    if (seen === undefined)
      return {
        state: "unknown",
        message: `waiting for the machine to answer about ${name}${withoutSystem(context)}`,
        cause: silent("ssh"),
      };
    if (seen.is === "absent") return "not_done";
    if (seen.is === "running") return { state: "in_progress", message: `${name} is running` };
    if (seen.is === "cut_off")
      throw new StepFailure("script_failed", `${name} was cut off: it was started and ended without a result`, {
        facts: { script: name },
      });
    if (seen.code !== 0) {
      const { cause, note } = await causeOf(seen.code, name, targets);
      const facts = { script: name, exit_code: seen.code };
      throw new StepFailure(cause, `${name} ended with exit code ${seen.code}${note}`, { facts });
    }
    return { state: "done", message: `${name} ended with exit code 0` };
  },

  carryOn: async (context: Acting) => (context.evidence.emptiedBy === undefined ? undefined : carryOnDrain(context)),

  async undo({ payload, evidence, can, targets, call }: Acting) {
    // A play ends with its stream: nothing of it runs any more. Neither does anything on a machine whose node the cluster empties.
    if (evidence.drain !== undefined || evidence.emptiedBy !== undefined || isPlaybook(payload.script_ref)) return;
    await endDetached({ ...scriptOf(evidence), exec: can.exec, ssh: await targets.ssh(), call });
  },
  undoIsPartial: true,
  insideSystem: true,
  residue: ({ script_ref }) => `script ${script_ref} may have been carried out in part`,
});

/** A machine that goes out of use may be dead. */
const withoutSystem = ({ payload, isReplacedNext }: Acting): string =>
  isReplacedNext && payload.script_ref === "drain_check.sh"
    ? ": no node of its cluster is this machine; the param force=true leaves out what only its system could answer"
    : "";

const scriptOf = ({ mark, asRoot }: Evidence) => ({ mark, ...(asRoot && { asRoot }) });

/** As the script says itself; one that is another by now says nothing of how this one ended. */
async function causeOf(code: number, ref: string, targets: StepTargets) {
  try {
    const runbook = await targets.script(ref);
    return { cause: causeOfExit(runbook, code), note: earlierNote(runbook) };
  } catch (error) {
    if (error instanceof StepFailure) return { cause: "script_failed" as const, note: "" };
    throw error;
  }
}
