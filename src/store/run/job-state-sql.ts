/**
 * The state of the job, of a run `t`: the column's own rule, and that of a workflow that compensates before it starts again. Written
 * as in the index that answers by it.
 */
export const JOB_STATE = `(case when t.state = 'RUNNING' and t.facts ->> 'compensateFirst' is not null then 'compensating' else t.job_state end)`;
