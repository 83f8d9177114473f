import { createHash } from "node:crypto";
import { type CreateEffect, create } from "../../kernel/effects.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { runLifecycle } from "../model/lifecycle.ts";
import type { Plan } from "../model/plan/plan.ts";
import type { RunTarget } from "./run-target.ts";

export interface RunToStart {
  readonly target: RunTarget;
  readonly plan: Plan;
  readonly params?: Readonly<Record<string, string>>;
  /** Who asked for it, or what did. */
  readonly initiator: string;
  /** Under whose claims it works, such as the thing that starts it. Absent: its own. */
  readonly holder?: RunTarget;
  readonly facts?: JsonObject;
}

/**
 * The effect by which a thing starts a run, on itself or on another thing: the run takes no machine's run slot. Its id follows from
 * `unique`, so that however often the same is asked for, after whatever crash and by whichever replica, there is one.
 */
export function startsRun(
  { target, plan, params = {}, initiator, holder, facts = {} }: RunToStart,
  unique: readonly (string | number)[],
  more: JsonObject = {},
): CreateEffect {
  const uuid = uuidOf(unique);
  return create(runLifecycle, `run-${uuid}`, {
    target_kind: target.kind,
    target_id: target.id,
    request_id: uuid,
    fingerprint: "",
    type: "",
    plan_id: plan.planId,
    plan: { ...plan, steps: plan.steps.map((step) => ({ ...step })) },
    params,
    job_id: `job-${uuid}`,
    attempt: 1,
    action: "start",
    initiator,
    ...(holder && { holder_kind: holder.kind, holder_id: holder.id }),
    facts,
    ...more,
  });
}

/** In the form of a UUID, as the ids of all runs are. */
function uuidOf(parts: readonly (string | number)[]): string {
  const hex = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
