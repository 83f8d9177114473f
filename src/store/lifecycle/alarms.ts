import type { JsonObject } from "../../kernel/lifecycle.ts";

/**
 * What of the journal somebody is to hear of. These words are types of events beside the entry's own: a run that fails is a `transition`
 * and `failed`.
 */
export const ALARMS = ["failed", "needs_intervention"] as const;
type Alarm = (typeof ALARMS)[number];

/** The state of each kind that means that what was asked for has failed. */
export const FAILED_STATES: Readonly<Record<string, string>> = {
  run: "FAILED",
  power_shelf: "error",
  install: "install_failed",
};

/** As much of an entry as that depends on. */
interface Told {
  readonly kind: string;
  readonly type: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly data: JsonObject;
}

/** Its twin in SQL is below; a test compares them. */
export function alarmOf({ kind, type, from, to, data }: Told): Alarm | null {
  if (type === "needs_intervention") return "needs_intervention";
  if (type === "conditions_changed") return callsForSomebody(data) ? "needs_intervention" : null;
  return type === "transition" && from !== to && to !== null && FAILED_STATES[kind] === to ? "failed" : null;
}

function callsForSomebody({ conditions }: JsonObject): boolean {
  const isCall = (one: unknown) =>
    typeof one === "object" &&
    one !== null &&
    "type" in one &&
    one.type === "NeedsIntervention" &&
    "status" in one &&
    one.status === true;
  return Array.isArray(conditions) && conditions.some(isCall);
}

const FAILED_SQL = Object.entries(FAILED_STATES)
  .map(([kind, state]) => `('${kind}', '${state}')`)
  .join(", ");

/** `alarmOf` of a row `j` in SQL. */
export const ALARM_SQL = `(case when j.type = 'needs_intervention' then 'needs_intervention'
  when j.type = 'conditions_changed' and j.data @> '{"conditions": [{"type": "NeedsIntervention", "status": true}]}' then 'needs_intervention'
  when j.type = 'transition' and j.from_state is distinct from j.to_state and (j.kind, j.to_state) in (${FAILED_SQL}) then 'failed' end)`;
