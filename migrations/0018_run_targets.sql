-- A run works on a target: a machine, a rack, a switch, a shelf, a fleet node. `machine_id` now means "takes this machine's run slot":
-- runs of plans do, runs on other things and runs that another run started do not.
alter table runs
  add column target_kind text,
  add column target_id text,
  -- the run whose step started this one; null for runs that somebody asked for
  add column parent_run_id text,
  add column parent_step text,
  add column parent_round integer,
  alter column machine_id drop not null;
update runs set target_kind = 'machine', target_id = machine_id;

-- A replica of the version before knows machines alone. It may still start runs while others are replaced one by one.
create function fill_run_target() returns trigger language plpgsql as $$
begin
  new.target_kind := 'machine';
  new.target_id := new.machine_id;
  return new;
end $$;
create trigger runs_fill_target before insert on runs for each row when (new.target_kind is null) execute function fill_run_target();
alter table runs
  alter column target_kind set not null,
  alter column target_id set not null,
  add constraint runs_parent_is_whole check (num_nulls(parent_run_id, parent_step, parent_round) in (0, 3)),
  -- a run that is a part of another takes no slot
  add constraint runs_child_takes_no_slot check (parent_run_id is null or machine_id is null);

-- At most one active run a target that somebody asked for, whatever races; `runs_one_active` says the same of a machine's slot.
create unique index runs_one_active_a_target on runs (target_kind, target_id)
  where state in ('PENDING', 'RUNNING') and parent_run_id is null;
-- A step starts one run a target in each of its rounds, whatever crashes; and a run is read with those that it started.
create unique index runs_one_child on runs (parent_run_id, parent_step, parent_round, target_kind, target_id)
  where parent_run_id is not null;
create index runs_by_target on runs (target_kind, target_id, created_at desc, id desc);
