import type { CallContext } from "../../capabilities/call.ts";
import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { Step } from "../model/plan.ts";
import { type AnyStep, capabilitiesFor } from "../model/step.ts";
import type { StepTargets } from "../model/targets.ts";
import type { RunLog } from "./run-log.ts";
import type { BegunActions } from "./step/begun-actions.ts";

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

/** A run may have been accepted by a server that was started with other providers, or is of another version. */
export function checkCapable(kind: AnyStep, { payload }: Step, { name, can }: Provider): void {
  const missing = capabilitiesFor(kind, payload).filter((capability) => can[capability] === undefined);
  if (missing.length === 0) return;
  const who =
    Object.keys(can).length === 0
      ? `this server does not have the provider ${name}`
      : `the provider ${name} of this server cannot do ${missing.join(", ")}`;
  // Another replica may have it: that is what further attempts are for.
  throw new StepFailure("retry", `${who}, which a step of kind ${kind.kind} needs`);
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
    heard: log.heard,
    isReplacedNext: isReplacedAfter(step, run.plan.steps),
  };
}

/** Kinds that want nothing of the machine's system. */
const FROM_OUTSIDE: readonly string[] = ["netboot", "reboot"];

const isReplacedAfter = ({ name }: Step, steps: readonly Step[]): boolean =>
  isReplacedFirst(steps.slice(steps.findIndex((each) => each.name === name) + 1));

/** Whether of these steps none wants anything of the system as it is before another one is installed. */
export const isReplacedFirst = (steps: readonly Step[]): boolean =>
  steps.find(({ kind }) => !FROM_OUTSIDE.includes(kind))?.kind === "repave";

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
