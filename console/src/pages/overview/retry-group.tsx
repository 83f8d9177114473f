import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { Run } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { type Action, type ActionResult, defineAction } from "../../actions/action.ts";
import { performEach } from "../../actions/perform-each.ts";
import { newRequestId } from "../../api/call-method.ts";
import { nameOfMethod } from "../../api/method-name.ts";
import { clientOf } from "../../api/services.ts";
import { countWords } from "../../parts/count-words.ts";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Facts } from "../../parts/facts.tsx";
import { useMe } from "../../shell/me.tsx";

const ActionDialog = lazy(async () => ({ default: (await import("../../actions/action-dialog.tsx")).ActionDialog }));

const MOST = 100;

/** Retries the failed runs of a group: those that are in it when somebody presses, which the dialog names, and no others. */
export function RetryGroup({ filter }: { readonly filter: string }) {
  const { may } = useMe();
  const reading = useMutation({
    mutationFn: async () => {
      const { runs } = await clientOf(RunService).listRuns({ filter, pageSize: MOST });
      return retryOf(runs.flatMap(({ run }) => (run && run.nextRunId === "" ? [run] : [])));
    },
  });
  if (!may.has(nameOfMethod(RunActionsService.method.retryRun))) return null;
  return (
    <>
      <Button size="compact-xs" variant="default" loading={reading.isPending} onClick={() => reading.mutate()}>
        Retry all …
      </Button>
      {reading.error !== null && <ErrorNote error={reading.error} />}
      <Suspense fallback={null}>
        {reading.data && <ActionDialog action={reading.data} onClose={reading.reset} />}
      </Suspense>
    </>
  );
}

const targetOf = ({ machineId, runId }: Run): Pick<ActionResult, "kind" | "id"> =>
  machineId === "" ? { kind: "run", id: runId } : { kind: "machine", id: machineId };

function retryOf(runs: readonly Run[]): Action {
  // Of one time: pressing again after a lost answer starts nothing twice.
  const asked = runs.map((run) => ({ run, requestId: newRequestId() }));
  const { retryRun } = RunActionsService.method;
  return defineAction({
    label: `Retry ${countWords(runs.length, "run")}`,
    says: "Does the step that failed once more for each of these runs, and what comes after it. Steps that were proved are not done again. A run that cannot be retried is refused by itself.",
    method: retryRun,
    request: {},
    asks: [],
    cli: runs.map(({ runId }) => `millwright run retry ${runId}`).join("\n"),
    preview: <Facts facts={[{ name: "On", value: runs.map((run) => targetOf(run).id).join(", ") }]} />,
    perform: () =>
      performEach(
        asked,
        async ({ run, requestId }) => {
          const answer = await clientOf(RunActionsService).retryRun({ runId: run.runId, requestId });
          return { ...targetOf(run), ...(answer.run && { runId: answer.run.runId }), refusal: "", next: "" };
        },
        ({ run }) => targetOf(run),
      ),
  });
}
