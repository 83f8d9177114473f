import type { ServiceImpl } from "@connectrpc/connect";
import type { RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import type { RunDeps } from "../../../services/run/deps.ts";
import { startRuns } from "../../../services/run/many/start-runs.ts";
import { markRunManual, startNextAttempt } from "../../../services/run/operator-actions.ts";
import { previewRun } from "../../../services/run/preview.ts";
import { readRunTree } from "../../../services/run/read.ts";
import { cancelJob } from "../../../services/run/workflow-actions.ts";
import { runOf } from "../../baremetal/run-messages.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { previewOf } from "./preview-messages.ts";
import { recordOf } from "./run-record-messages.ts";

export const runActions = (deps: RunDeps): ServiceImpl<typeof RunActionsService> => ({
  async previewRun(request) {
    return previewOf(await previewRun(deps, request));
  },
  async startRuns(request, { values }) {
    const run = await startRuns(deps, values.get(callerKey), request);
    return { run: recordOf(deps, await readRunTree(deps, run)) };
  },
  async retryRun(request, { values }) {
    return { run: runOf(await startNextAttempt(deps, values.get(callerKey), "retry", request)) };
  },
  async resumeRun(request, { values }) {
    return { run: runOf(await startNextAttempt(deps, values.get(callerKey), "resume", request)) };
  },
  async rerunRun(request, { values }) {
    return { run: runOf(await startNextAttempt(deps, values.get(callerKey), "rerun", request)) };
  },
  async restartRunClean(request, { values }) {
    return { run: runOf(await startNextAttempt(deps, values.get(callerKey), "restart_clean", request)) };
  },
  async adoptRun(request, { values }) {
    return { run: runOf(await startNextAttempt(deps, values.get(callerKey), "adopt", request)) };
  },
  async markRunManual(request, { values }) {
    return { run: runOf(await markRunManual(deps, values.get(callerKey), request)) };
  },
  async cancelJob(request, { values }) {
    return { run: runOf(await cancelJob(deps, values.get(callerKey), request)) };
  },
});
