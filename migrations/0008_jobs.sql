-- A job is what its latest attempt says of it. Attempts follow one another: at most one has a given number, so no two can both be
-- the next one after the same run.
alter table runs
  -- how this attempt came about
  add column action text not null default 'start'
    check (action in ('start', 'retry', 'resume', 'rerun', 'restart_clean', 'adopt')),
  -- the attempt that came after; this one then no longer speaks for the job
  add column next_run_id text,
  -- people took the failed job over: when, who, and what they said
  add column manual_at timestamptz,
  add column manual_by text,
  add column manual_comment text;
-- The database's own spelling of `jobStateOf`; a test compares the two.
alter table runs
  add column job_state text generated always as (
    case
      when next_run_id is not null then ''
      when state = 'PENDING' then 'pending'
      when state = 'RUNNING' then case when cancel_requested_at is null then 'running' else 'compensating' end
      when state = 'SUCCEEDED' then case when action = 'adopt' then 'reconciled' else 'completed' end
      when state = 'CANCELED' then 'cancelled'
      when manual_at is not null or facts -> 'error' -> 'retryable' = 'false'::jsonb then 'failed_manual_intervention'
      else 'failed_retryable'
    end) stored;
create unique index runs_by_job on runs (job_id, attempt);
-- Those that wait for people are few among very many; all others are found soon enough by walking back in time.
create index runs_by_open_job on runs (job_state, created_at desc, id desc)
  where job_state in ('failed_retryable', 'failed_manual_intervention', 'compensating');
