import { type PreviewRunResponse, RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { isConnectError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { printable } from "../../terminal/printable.ts";

export interface ToStart extends ConfirmOptions {
  readonly machines: readonly string[];
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Asks before a run disturbs machines that serve a cluster, and warns of what may not be meant. */
export async function confirmStart(session: Session, start: ToStart): Promise<void> {
  const { machines, yes = false, type, planId } = start;
  // Nothing to ask and nothing that could contradict: the start alone answers.
  if (yes && (type === "" || planId === "")) return;
  const disturbed: string[] = [];
  const warnings = new Set<string>();
  for (const machineId of machines) {
    const preview = await previewOf(session, { ...start, machineId });
    for (const warning of preview?.warnings ?? []) warnings.add(warning);
    if (preview && preview.disturbsCluster !== "")
      disturbed.push(`${machineId} (serves cluster ${preview.disturbsCluster}, not drained)`);
  }
  for (const warning of warnings) session.terminal.stderr.write(`warning: ${printable(warning)}\n`);
  if (yes || disturbed.length === 0) return;
  await confirm(session, { what: `${type || `Plan ${planId}`} disturbs ${namesOf(disturbed)}. Start it?` });
}

const MOST_NAMED = 10;

function namesOf(disturbed: readonly string[]): string {
  const more = disturbed.length - MOST_NAMED;
  return `${disturbed.slice(0, MOST_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Undefined where the server cannot tell: an older one, or a start that --yes has confirmed already and that answers for itself. */
async function previewOf(
  session: Session,
  { machineId, type, planId, params, yes }: ToStart & { readonly machineId: string },
): Promise<PreviewRunResponse | undefined> {
  const client = await session.client(RunActionsService);
  try {
    return await client.previewRun({ machineId, type, planId, params: { ...params } }, { signal: session.signal });
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (yes || (isConnectError(error) && error.code === Code.Unimplemented)) return undefined;
    throw error;
  }
}
