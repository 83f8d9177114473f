-- Before all else, since it reads the whole journal: what comes after it locks runs for a moment only.
-- What happened since when: entries are written in the order of their times, so that a summary of each range of pages finds them.
create index journal_by_time on journal using brin (at) with (pages_per_range = 32);

-- A batch is a set of machines, frozen when somebody starts runs on all of them. The run that starts those runs has the batch as its target.
create table batches (
  id            text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  machines      jsonb not null,
  -- who asked, under whose name the runs are started
  initiator     text not null,
  created_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}'
);
-- A run of a batch takes its machine's slot, as any run that somebody starts on the machine does: the run of the batch works on no device itself.
alter table runs drop constraint runs_child_takes_no_slot;
-- Any other child works beside whatever runs on its target. Not valid: no row of before could break it, and none is read for it.
alter table runs add constraint runs_child_takes_own_slot
  check (parent_run_id is null or machine_id is null or (target_kind = 'machine' and target_id = machine_id)) not valid;
