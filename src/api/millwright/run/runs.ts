import type { ServiceImpl } from "@connectrpc/connect";
import type { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { reachOf } from "../../../kernel/access/scope.ts";
import { listUsualDurations } from "../../../services/overview/usual-durations.ts";
import { cancelRun } from "../../../services/run/cancel.ts";
import type { RunDeps } from "../../../services/run/deps.ts";
import { ALL_RUNS, ASKED_FOR } from "../../../services/run/filter.ts";
import { readRunLog, streamRunLogs } from "../../../services/run/logs.ts";
import { getRun, pageRuns, readRunTree } from "../../../services/run/read.ts";
import { watchRuns } from "../../../services/run/watch.ts";
import type { EventSource } from "../../../services/system/watch.ts";
import { logChunkOf } from "../../baremetal/run-messages.ts";
import { durationOf } from "../../convert/fields.ts";
import { listRequestFrom } from "../../convert/listing.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { recordOf, watchedOf } from "./run-record-messages.ts";

const scopeOf = ({ children }: { readonly children: boolean }) => (children ? ALL_RUNS : ASKED_FOR);

/** Runs on all targets. */
export const allRuns = (deps: RunDeps, events: EventSource): ServiceImpl<typeof RunService> => ({
  async getRun({ runId }) {
    const run = await getRun(deps, runId);
    return { run: recordOf(deps, await readRunTree(deps, run)) };
  },
  async listRuns(request, { values }) {
    const asked = listRequestFrom(request, values.get(callerKey));
    const { items, nextPageToken, totalSize } = await pageRuns(deps, asked, scopeOf(request));
    return {
      runs: items.map((run) => recordOf(deps, { run })),
      nextPageToken,
      ...(totalSize !== null && { totalSize }),
    };
  },
  async cancelRun({ runId }, { values }) {
    const run = await cancelRun(deps, values.get(callerKey), runId);
    return { run: recordOf(deps, await readRunTree(deps, run)) };
  },
  async *watchRuns(request, { signal, values }) {
    const { filter, cursor } = request;
    const query = { filter, cursor, scope: scopeOf(request), reach: reachOf(values.get(callerKey).scope) };
    for await (const event of watchRuns(deps, events, query, signal)) yield watchedOf(deps, event);
  },
  async *streamRunLogs({ runId, after, noFollow }, { signal }) {
    const query = { runId, after: Number(after), follow: !noFollow, scope: ALL_RUNS };
    for await (const row of streamRunLogs(deps, events, query, signal)) yield { chunk: logChunkOf(runId, row) };
  },
  async readRunLog({ before, ...part }) {
    const { rows, hasMore } = await readRunLog(deps, { ...part, before: Number(before) }, ALL_RUNS);
    return { chunks: rows.map((row) => logChunkOf(part.runId, row)), more: hasMore };
  },
  async listUsualDurations({ runId }) {
    const steps = await listUsualDurations(deps, runId);
    return {
      steps: steps.map(({ step, median, p95, samples }) => ({
        step,
        p50: durationOf(median),
        p95: durationOf(p95),
        samples,
      })),
    };
  },
});
