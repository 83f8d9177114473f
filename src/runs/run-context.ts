import type { CallContext } from "../capabilities/call.ts";
import type { Capabilities, Provider } from "../capabilities/provider.ts";
import type { Clock } from "../kernel/clock.ts";
import { StepFailure } from "../kernel/errors.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { BegunActions } from "./begun-actions.ts";
import type { RunThing } from "./lifecycle.ts";
import type { Step } from "./plan.ts";
import type { RunLog } from "./run-log.ts";
import type { AnyStep } from "./step.ts";
import type { StepTargets } from "./targets.ts";

export interface RunContext {
  readonly call: CallContext;
  readonly clock: Clock;
  readonly steps: ReadonlyMap<string, AnyStep>;
  /** The provider of the run's machine. */
  readonly provider: Provider;
  targetsOf(machine: Machine): StepTargets;
  /** Names this process: only the one that announced an action can know that it has not begun. */
  readonly instance: string;
  /** What this process has begun. */
  readonly begun: BegunActions;
}

/** What a step of the run works with. */
export function stepContext(run: RunThing, step: Step, { provider, targetsOf, call }: RunContext, log: RunLog) {
  const targets = targetsOf(run.machine);
  return {
    payload: step.payload,
    runId: run.id,
    machine: run.machine,
    targets: { ...targets, script: frozenScripts(run, targets) },
    can: provider.can as Capabilities,
    call,
    log: log.say,
    params: run.params,
    basis: run.basis,
  };
}

/** A script that changed since the run was started is not the one that its caller asked for. */
const frozenScripts =
  ({ facts: { scripts } }: RunThing, targets: StepTargets): StepTargets["script"] =>
  async (ref) => {
    const found = await targets.script(ref);
    const frozen = scripts[ref];
    if (frozen === undefined || frozen === found.digest) return found;
    throw new StepFailure(
      "fail",
      `script ${ref} is ${found.digest} now, but was ${frozen} when this run was started: start it anew`,
    );
  };
