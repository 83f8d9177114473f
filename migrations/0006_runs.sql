-- One attempt at a job: a plan, frozen as it was, carried out on one machine.
create table runs (
  id                  text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  machine_id          text not null,
  request_id          text not null,
  -- what was asked for, so that a repeated request can be told from another one under the same id
  fingerprint         text not null,
  type                text not null,
  plan_id             text not null,
  plan                jsonb not null,
  params              jsonb not null default '{}',
  job_id              text not null,
  attempt             integer not null default 1,
  previous_run_id     text,
  initiator           text not null,
  created_at          timestamptz not null default now(),
  cancel_requested_at timestamptz,
  state               text not null,
  state_data          jsonb not null default '{}',
  state_version       bigint not null default 1,
  state_since         timestamptz not null default now(),
  outcome             jsonb,
  version             bigint not null default 1,
  basis               bigint not null default 1,
  -- steps, startedAt, finishedAt, error, residue
  facts               jsonb not null default '{}',
  unique (machine_id, request_id)
);
-- At most one active run a machine, whatever races.
create unique index runs_one_active on runs (machine_id) where state in ('PENDING', 'RUNNING');
create index runs_by_machine on runs (machine_id, created_at desc, id desc);
create index runs_by_creation on runs (created_at desc, id desc);
create index runs_by_state on runs (state, created_at desc, id desc);
create index runs_by_plan on runs (plan_id);

-- What steps said. One writer a run, under its lease, so that the order of seq is the order of commits.
create table run_logs (
  run_id text not null references runs (id) on delete cascade,
  seq    bigint not null,
  at     timestamptz not null,
  step   text not null,
  stream text not null check (stream in ('stdout', 'stderr')),
  data   bytea not null,
  primary key (run_id, seq)
);
