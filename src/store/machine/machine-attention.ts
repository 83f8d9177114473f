import { EXCUSES } from "../../lifecycles/machine/failing.ts";
import type { AttentionSql } from "../lifecycle/attention.ts";

const EXCUSED = EXCUSES.map((excuse) => `'${excuse}'`).join(", ");
/** Conditions `c` by which a machine is failing. */
const BAD = `((c ->> 'type' in ('Degraded', 'NeedsIntervention') and c -> 'status' = 'true')
  or (c ->> 'type' in ('Reachable', 'BMCReachable') and c -> 'status' = 'false' and c ->> 'reason' not in (${EXCUSED})))`;
/** The last of them says the most: that somebody is needed comes after that nobody answers. */
const lastBad = (value: string): string =>
  `(select ${value} from jsonb_array_elements(t.conditions) with ordinality o (c, place) where ${BAD} and ${value} <> '' order by place desc limit 1)`;

/** Machines that are failing; the list has the same under `failing`. Those that are so for a failed run alone are named by their run. */
export const machineAttention: AttentionSql = {
  applies: `t.failing = 'true'`,
  filter: "failing=true",
  since: `coalesce((select min((c ->> 'last_transition')::timestamptz) from jsonb_array_elements(t.conditions) as c where ${BAD}), t.state_since)`,
  cause: `coalesce(${lastBad("c -> 'cause' ->> 'code'")}, '')`,
  message: `coalesce(${lastBad("c ->> 'message'")}, ${lastBad("c ->> 'reason'")}, '')`,
  covered: `(select bool_and(c ->> 'reason' = 'RunFailed') from jsonb_array_elements(t.conditions) as c where ${BAD})`,
};
