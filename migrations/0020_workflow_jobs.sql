-- A failed job of a workflow can be canceled: the next attempt at it undoes what those before it did.
alter table runs drop constraint runs_action_check;
alter table runs add constraint runs_action_check
  check (action in ('start', 'retry', 'resume', 'rerun', 'restart_clean', 'adopt', 'cancel')) not valid;
alter table runs validate constraint runs_action_check;

-- A restart of a workflow compensates first. The expression is that of `JOB_STATE` in src/store/run/runs.ts; servers of the version
-- before go on with the column and its own index.
create index runs_by_open_job_state on runs
  ((case when state = 'RUNNING' and facts ->> 'compensateFirst' is not null then 'compensating' else job_state end), created_at desc, id desc)
  where (case when state = 'RUNNING' and facts ->> 'compensateFirst' is not null then 'compensating' else job_state end)
        in ('failed_retryable', 'failed_manual_intervention', 'compensating');
