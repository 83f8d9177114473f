import { MachineStatus_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { confirm } from "../../terminal/confirm.ts";
import { namedList } from "../../terminal/named-list.ts";
import { readMachines } from "../machine/read.ts";
import { shownOf } from "./record.ts";
import { type StartRunOptions, showStarted } from "./start.ts";

export interface FilterOptions {
  readonly filter?: string;
  readonly maxParallel?: number;
  readonly stopAfter?: number;
}

export interface StartByFilter {
  readonly filter: string;
  readonly requestId: string;
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
}

const MOST_NAMED = 5;

/** One run that starts the others, at the server: it goes on without this command. */
export async function startByFilter(
  session: Session,
  start: StartByFilter,
  { maxParallel = 5, stopAfter = 1, wait = false, yes = false, dryRun }: StartRunOptions,
): Promise<number | undefined> {
  const admitted = await readMachines(session, start.filter);
  const machines = admitted.filter(({ status }) => status?.phase !== MachineStatus_Phase.RETIRED);
  if (machines.length === 0) throw new UsageError("no machine matches --filter", "millwright machine list --filter …");
  if (dryRun) {
    const ids = machines.map(({ machineId }) => machineId);
    return (await import("./preview.ts")).previewMany(session, { ...start, machines: ids });
  }
  if (!yes) {
    const ids = machines.map(({ machineId }) => machineId);
    const what = `Start ${start.type || start.planId} on ${ids.length} machines (${namedList(ids, MOST_NAMED)})?`;
    await confirm(session, { what });
  }
  const client = await session.client(RunActionsService);
  const { run } = await client.startRuns(
    { ...start, params: { ...start.params }, maxParallel, stopAfter },
    { signal: session.signal },
  );
  const asStarted = shownOf(run);
  return showStarted(session, { runId: asStarted.run.runId, wait, asStarted });
}
