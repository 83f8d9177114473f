import type { ServiceImpl } from "@connectrpc/connect";
import type { RunService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import {
  cancelRun,
  getRun,
  pageRuns,
  type RunDeps,
  startRun,
  streamRunLogs,
  watchRuns,
} from "../../services/run/runs.ts";
import type { EventSource } from "../../services/system/watch.ts";
import { callerKey } from "../transport/interceptors.ts";
import { logChunkOf, runEventOf, runOf } from "./run-messages.ts";

export const runs = (deps: RunDeps, events: EventSource): ServiceImpl<typeof RunService> => ({
  async startRun(request, { values }) {
    return runOf(await startRun(deps, values.get(callerKey), request));
  },
  async getRun({ runId }) {
    return runOf(await getRun(deps, runId));
  },
  async listRuns(request) {
    const { items, nextPageToken } = await pageRuns(deps, request);
    return { runs: items.map(runOf), nextPageToken };
  },
  async cancelRun({ runId }, { values }) {
    return runOf(await cancelRun(deps, values.get(callerKey), runId));
  },
  async *watchRuns(request, { signal }) {
    for await (const event of watchRuns(deps, events, request, signal)) yield runEventOf(event);
  },
  async *streamRunLogs({ runId, after, noFollow }, { signal }) {
    const query = { runId, after: Number(after), follow: !noFollow };
    for await (const row of streamRunLogs(deps, events, query, signal)) yield logChunkOf(runId, row);
  },
});
