import { type PreviewRunResponse, RunActionsService, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import type { Session } from "../../client/session.ts";
import { unlessRefused } from "../../client/unless-refused.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { namedList } from "../../terminal/named-list.ts";
import { printable } from "../../terminal/printable.ts";
import { printLine } from "../../terminal/printing.ts";
import { valueText } from "../options/list-options.ts";

export interface ToStart extends ConfirmOptions {
  readonly machines: readonly string[];
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
  /** As the caller gave it; undefined for one of our own, which nobody has used before. */
  readonly requestId: string | undefined;
}

/** Asks before a run disturbs machines that serve a cluster, and warns of what may not be meant. */
export async function confirmStart(session: Session, start: ToStart): Promise<void> {
  const { machines, yes = false, type, planId } = start;
  // Nothing to ask and nothing that could contradict: the start alone answers.
  if (yes && (type === "" || planId === "")) return;
  const disturbed: string[] = [];
  const warnings = new Set<string>();
  for (const machineId of machines) {
    if (await isRepeated(session, { machineId, requestId: start.requestId })) continue;
    const preview = await previewOf(session, { ...start, machineId });
    for (const warning of preview?.warnings ?? []) warnings.add(warning);
    if (preview && preview.disturbsCluster !== "")
      disturbed.push(`${machineId} (serves cluster ${preview.disturbsCluster}, not drained)`);
  }
  for (const warning of warnings) printLine(session.terminal.stderr, `warning: ${printable(warning)}`);
  if (yes || disturbed.length === 0) return;
  await confirm(session, {
    what: `${type || `Plan ${planId}`} disturbs ${namedList(disturbed, MOST_NAMED)}. Start it?`,
  });
}

const MOST_NAMED = 10;

/** A request that made its run before starts nothing: it is answered with that run. */
export async function isRepeated(
  session: Session,
  { machineId, requestId }: { readonly machineId: string; readonly requestId: string | undefined },
): Promise<boolean> {
  if (requestId === undefined) return false;
  const client = await session.client(RunService);
  const filter = `request_id=${valueText(requestId)} AND machine_id=${valueText(machineId)}`;
  const made = await unlessRefused(() => client.listRuns({ filter, pageSize: 1 }, { signal: session.signal }));
  return made !== undefined && made.runs.length > 0;
}

export async function previewOf(
  session: Session,
  { machineId, type, planId, params }: Pick<ToStart, "type" | "planId" | "params"> & { readonly machineId: string },
): Promise<PreviewRunResponse | undefined> {
  const client = await session.client(RunActionsService);
  const request = { machineId, type, planId, params: { ...params } };
  return unlessRefused(() => client.previewRun(request, { signal: session.signal }));
}
