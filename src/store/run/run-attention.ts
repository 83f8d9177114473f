import type { AttentionSql } from "../lifecycle/attention.ts";
import { JOB_STATE } from "./job-state-sql.ts";

/**
 * Jobs that have failed and wait for somebody. Of a machine only its last run, and only until somebody has seen to it; of another target
 * until something came after it. Parts of somebody else's work are that one's own trouble.
 */
export const runAttention: AttentionSql = {
  applies: `(${JOB_STATE} in ('failed_retryable', 'failed_manual_intervention')
    and case when t.machine_id is null then t.parent_run_id is null
             when t.target_kind = 'machine' then exists (select from machines m where m.id = t.machine_id and m.last_run_id = t.id
               and m.conditions @> '[{"type": "NeedsIntervention", "status": true}]')
             else not exists (select from runs n where n.target_kind = t.target_kind and n.target_id = t.target_id
               and (n.created_at, n.id) > (t.created_at, t.id)) end)`,
  filter: "job_state IN (failed_retryable, failed_manual_intervention)",
  since: "t.state_since",
  cause: `coalesce(t.facts -> 'error' -> 'details' ->> 'cause', '')`,
  message: `coalesce(t.facts -> 'error' ->> 'message', '')`,
};
