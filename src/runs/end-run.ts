import type { JsonObject } from "../kernel/lifecycle.ts";
import { type Effect, happened } from "../kernel/outcome.ts";
import type { RunThing } from "./lifecycle.ts";
import type { EndedRunPhase, RunErrorCode } from "./run.ts";
import type { RunContext } from "./run-context.ts";
import { CAUSE_OF_END, conditionsAtEnd, residueAfter } from "./run-end.ts";
import type { RunLog } from "./run-log.ts";

export interface Ending {
  readonly message?: string;
  /** Beside what the run has listed before. */
  readonly residue?: readonly string[];
  readonly failure?: { readonly code: RunErrorCode; readonly retryable: boolean; readonly step: string };
  readonly steps?: readonly JsonObject[];
}

const EVENT_OF_END = { SUCCEEDED: "finished", FAILED: "step_failed", CANCELED: "canceled" } as const satisfies Record<
  EndedRunPhase,
  string
>;

/** The run's end, the machine's phase and its conditions are one commit; so is that an install does not outlive its run. */
export function endRun(
  run: RunThing,
  phase: EndedRunPhase,
  { clock }: RunContext,
  log: RunLog,
  { message = "", residue = [], failure, steps }: Ending,
) {
  const error = failure
    ? { code: failure.code, message, retryable: failure.retryable, details: { step: failure.step } }
    : null;
  const left = [...run.facts.residue, ...residue];
  const machine: Effect = {
    type: "move",
    kind: "machine",
    id: run.machine.id,
    cause: CAUSE_OF_END[phase],
    message,
    facts: { lastRunId: run.id, residue: residueAfter(run.plan, phase, [...run.machine.facts.residue, ...left]) },
    observed: conditionsAtEnd(run.plan, phase, message).map((condition) => ({ ...condition })),
  };
  // A machine that rests is not looked at by itself: its node would stay as it is until somebody happens to look.
  const hasNodeToSeeTo = run.machine.facts.cordoned || run.machine.state.drain === true;
  const wake: readonly Effect[] = hasNodeToSeeTo ? [{ type: "wake", kind: "machine", id: run.machine.id }] : [];
  return happened(EVENT_OF_END[phase], {
    ...(message !== "" && { message }),
    facts: {
      finishedAt: clock.now().toISOString(),
      error,
      residue: left,
      takeBackFirst: null,
      ...(steps && { steps }),
    },
    effects: [machine, ...wake, ...installLetGo(run, phase, message), ...log.effects("")],
  });
}

/** Who canceled a run does not want the machine installed at its next boot after all. */
function installLetGo({ id, plan, machine }: RunThing, phase: EndedRunPhase, message: string): Effect[] {
  if (!plan.steps.some(({ kind }) => kind === "repave")) return [];
  const why = `run ${id} ended ${phase}${message === "" ? "" : `: ${message}`}`;
  return [{ type: "move", kind: "install", id: machine.id, cause: "run_ended", ifPossible: true, message: why }];
}
