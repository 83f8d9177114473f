import { type Effect, log, type ObserveEffect, observe } from "../../kernel/effects.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Residue, residueLine } from "../../kernel/residue.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { runLifecycle } from "../model/lifecycle.ts";
import type { HeardSoFar, LogStream, StepLog } from "../model/step.ts";

/** What one pass says; it is stored with what the pass did, or not at all, so that the log has no hole and no repeat. */
export interface RunLog {
  readonly say: StepLog;
  /** That this is left, and what ends it all the same. */
  staysBehind(left: Residue, end?: string): void;
  /** What of scripts was said so far; shared by all that the pass says. */
  readonly heard: HeardSoFar;
  /** What was found out of another thing on the way, such as where the run's machine is now; written with what is said. */
  learn(kind: string, id: string, facts: JsonObject): void;
  /** What the pass does to other things beside what it reports; written with what is said. */
  cause(effects: readonly Effect[]): void;
  effects(step: string): readonly Effect[];
}

export function createRunLog(runId: string, clock: Clock, heard: HeardSoFar): RunLog {
  const lines: { readonly at: string; readonly stream: LogStream; readonly text: string | Uint8Array }[] = [];
  const learnt: ObserveEffect[] = [];
  const caused: Effect[] = [];
  const say: StepLog = (text, stream = "stdout") => {
    // What is ours is a line; what a script wrote is passed on in pieces, and stays as it wrote it.
    const said = typeof text === "string" && !text.endsWith("\n") ? `${text}\n` : text;
    lines.push({ at: clock.now().toISOString(), stream, text: said });
  };
  return {
    heard,
    say,
    staysBehind: (left, end) =>
      say(`stays behind: ${residueLine(left)}${end === undefined ? "" : `; ${end}`}`, "stderr"),
    learn(kind, id, facts) {
      // A thing is changed once in a commit.
      const before = learnt.findIndex((one) => one.kind === kind && one.id === id);
      const [known] = before < 0 ? [] : learnt.splice(before, 1);
      learnt.push(observe({ kind }, id, { ...known?.facts, ...facts }));
    },
    cause(effects) {
      caused.push(...effects);
    },
    effects: (step) =>
      lines.length === 0
        ? [...learnt, ...caused]
        : [
            log(
              runLifecycle,
              runId,
              lines.map((line) => ({ ...line, step })),
            ),
            ...learnt,
            ...caused,
          ],
  };
}
