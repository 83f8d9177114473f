import { type Run, Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { type Action, defineAction } from "../../actions/action.ts";

const ofNewRun = (answer: unknown): string | undefined => {
  const { run } = answer as { readonly run?: { readonly runId?: string } };
  return run?.runId === undefined ? undefined : `/runs/${encodeURIComponent(run.runId)}`;
};

/** What people can do with a run, the most helpful first: what `RunActionsService` says of when each is possible. */
export function actionsOf(run: Run): readonly Action[] {
  if (run.nextRunId !== "") return [];
  if (run.finishedAt === undefined) return run.cancelRequestedAt === undefined ? [cancel(run)] : [];
  if (run.phase === Run_Phase.FAILED) return [retry(run), resume(run), ...again(run), adopt(run), markManual(run)];
  return run.phase === Run_Phase.CANCELED ? [resume(run), ...again(run), adopt(run)] : [rerun(run)];
}

const again = (run: Run): readonly Action[] => [rerun(run), restartClean(run)];

const cancel = ({ runId }: Run) =>
  defineAction({
    label: "Cancel run",
    says: "Asks the run to stop. It ends in bounded time, also when the machine does not answer, and lists what it could not undo. It can be resumed.",
    method: RunService.method.cancelRun,
    request: { runId },
    cli: `millwright run cancel ${runId}`,
    isDangerous: true,
  });

const retry = ({ runId, machineId }: Run) =>
  defineAction({
    label: "Retry step",
    says: `Does the step that failed once more on ${machineId || "its target"}, and what comes after it. Steps that were proved are not done again.`,
    method: RunActionsService.method.retryRun,
    request: { runId },
    cli: `millwright run retry ${runId}`,
    leadsTo: ofNewRun,
  });

const resume = ({ runId }: Run) =>
  defineAction({
    label: "Resume",
    says: "Goes on where it stopped, after somebody has put right what stopped it. Checks first whether the step is done, and does it only if it is not.",
    method: RunActionsService.method.resumeRun,
    request: { runId },
    cli: `millwright run resume ${runId}`,
    leadsTo: ofNewRun,
  });

const rerun = ({ runId, machineId }: Run) =>
  defineAction({
    label: "Run again",
    says: `Does everything once more on ${machineId || "its target"}, from the first step, with the same plan.`,
    method: RunActionsService.method.rerunRun,
    request: { runId },
    cli: `millwright run rerun ${runId}`,
    isDangerous: true,
    leadsTo: ofNewRun,
  });

const restartClean = ({ runId }: Run) =>
  defineAction({
    label: "Undo, and run again",
    says: "First undoes what the attempt began and could not prove, and lists what stays. Then does everything from the first step.",
    method: RunActionsService.method.restartRunClean,
    request: { runId },
    cli: `millwright run restart-clean ${runId}`,
    isDangerous: true,
    leadsTo: ofNewRun,
  });

const adopt = ({ runId }: Run) =>
  defineAction({
    label: "Adopt as it is",
    says: "Only checks, and does nothing to the machine. When every step that is left is seen to be done, the run has succeeded.",
    method: RunActionsService.method.adoptRun,
    request: { runId },
    cli: `millwright run adopt ${runId}`,
    leadsTo: ofNewRun,
  });

const markManual = ({ runId }: Run) =>
  defineAction({
    label: "Take over by hand",
    says: "Says that people take over. Nothing retries the job but them. Say what is wrong and who sees to it.",
    method: RunActionsService.method.markRunManual,
    request: { runId },
    cli: `millwright run mark-manual ${runId} --comment <text>`,
  });
