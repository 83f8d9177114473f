import type { Session } from "../../client/session.ts";
import { unlessRefused } from "../../client/unless-refused.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { namedList } from "../../terminal/named-list.ts";
import { servingOf } from "../machine/serving.ts";
import { isRepeated, previewOf } from "./confirm-start.ts";
import { readRun, type ShownRun } from "./record.ts";

export interface ToRepeat extends ConfirmOptions {
  readonly runIds: readonly string[];
  /** As people call it: retry. */
  readonly word: string;
  /** As the caller gave it; undefined for one of our own, which nobody has used before. */
  readonly requestId: string | undefined;
  /** They were chosen by a filter: nobody has named them. */
  readonly areChosen: boolean;
}

const MOST_NAMED = 10;

/** Asks before runs are done again that disturb machines which serve a cluster, or that start runs on many machines. */
export async function confirmAct(session: Session, { runIds, word, requestId, areChosen, yes = false }: ToRepeat) {
  if (yes) return;
  const reasons: string[] = [];
  for (const runId of runIds) {
    const shown = await unlessRefused(() => readRun(session, runId));
    const reason = shown ? await disturbanceOf(session, shown, requestId) : "";
    if (reason !== "") reasons.push(`${runId} ${reason}`);
  }
  const many = areChosen ? `${word} ${runIds.length} runs (${namedList(runIds, MOST_NAMED)})` : "";
  const disturbing = reasons.length === 0 ? "" : `${word} disturbs: ${namedList(reasons, MOST_NAMED)}`;
  const what = [many, disturbing].filter((text) => text !== "").join("; ");
  if (what !== "") await confirm(session, { what: `${what}. Go on?` });
}

async function disturbanceOf(
  session: Session,
  { run, target }: ShownRun,
  requestId: string | undefined,
): Promise<string> {
  if (target.kind === "batch") return "starts runs on many machines";
  if (target.kind !== "machine") return "";
  const { type, planId } = run;
  const { id: machineId } = target;
  if (await isRepeated(session, { machineId, requestId })) return "";
  const preview = await previewOf(session, { machineId, type, planId, params: {} });
  // Of a plan that no caller can name, as that of a power command, there is no preview.
  const serving = preview ? [] : ((await unlessRefused(() => servingOf(session, [machineId]))) ?? []);
  const cluster = preview?.disturbsCluster ?? (serving.length > 0 ? "a cluster" : "");
  return cluster === "" ? "" : `works on ${machineId}, which serves ${cluster} and is not drained`;
}
