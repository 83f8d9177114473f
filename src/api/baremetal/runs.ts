import type { ServiceImpl } from "@connectrpc/connect";
import type { RunService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { reachOf } from "../../kernel/access/scope.ts";
import { cancelRun } from "../../services/run/cancel.ts";
import type { RunDeps } from "../../services/run/deps.ts";
import { WITH_SLOT } from "../../services/run/filter.ts";
import { streamRunLogs } from "../../services/run/logs.ts";
import { getRun, pageRuns } from "../../services/run/read.ts";
import { startRun } from "../../services/run/starts.ts";
import { watchRuns } from "../../services/run/watch.ts";
import type { EventSource } from "../../services/system/watch.ts";
import { callerKey } from "../transport/interceptors.ts";
import { logChunkOf, runEventOf, runOf } from "./run-messages.ts";

/** Runs that take a machine's run slot: the contract knows no others. */
export const runs = (deps: RunDeps, events: EventSource): ServiceImpl<typeof RunService> => ({
  async startRun(request, { values }) {
    return runOf(await startRun(deps, values.get(callerKey), request));
  },
  async getRun({ runId }) {
    return runOf(await getRun(deps, runId, WITH_SLOT));
  },
  async listRuns({ filter, pageSize, pageToken }, { values }) {
    const asked = { filter, pageSize, pageToken, reach: reachOf(values.get(callerKey).scope) };
    const { items, nextPageToken } = await pageRuns(deps, asked, WITH_SLOT);
    return { runs: items.map(runOf), nextPageToken };
  },
  async cancelRun({ runId }, { values }) {
    return runOf(await cancelRun(deps, values.get(callerKey), runId, WITH_SLOT));
  },
  async *watchRuns({ filter, cursor }, { signal, values }) {
    const query = { filter, cursor, scope: WITH_SLOT, reach: reachOf(values.get(callerKey).scope) };
    for await (const event of watchRuns(deps, events, query, signal)) yield runEventOf(event);
  },
  async *streamRunLogs({ runId, after, noFollow }, { signal }) {
    const query = { runId, after: Number(after), follow: !noFollow, scope: WITH_SLOT };
    for await (const row of streamRunLogs(deps, events, query, signal)) yield logChunkOf(runId, row);
  },
});
