import type { Clock } from "../kernel/clock.ts";
import type { Effect } from "../kernel/outcome.ts";
import type { LogStream, StepLog } from "./step.ts";

/** What one look says; it is stored with what the look did, or not at all, so that the log has no hole and no repeat. */
export interface RunLog {
  readonly say: StepLog;
  effects(step: string): readonly Effect[];
}

export function createRunLog(runId: string, clock: Clock): RunLog {
  const lines: { readonly at: string; readonly stream: LogStream; readonly text: string }[] = [];
  return {
    say(text, stream = "stdout") {
      const said = typeof text === "string" ? text : Buffer.from(text).toString("utf8");
      lines.push({ at: clock.now().toISOString(), stream, text: said.endsWith("\n") ? said : `${said}\n` });
    },
    effects: (step) =>
      lines.length === 0
        ? []
        : [{ type: "log", kind: "run", id: runId, lines: lines.map((line) => ({ ...line, step })) }],
  };
}
