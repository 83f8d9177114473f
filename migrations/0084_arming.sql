-- Who works on a machine may restart it: the next boot of a node that waits for one is expected. Whether it is a run of power, of netboot or of a
-- repave makes no difference, and replicas of the earlier version start runs too.
create function arm_with_run() returns trigger language plpgsql as $$
begin
  update installs set armed_at = now(), armed_by = 'run'
   where id = new.id
     and (state in ('pending', 'deprovisioning') or (state = 'installing' and facts ->> 'attemptFailed' = 'true'));
  return null;
end $$;
create trigger machines_run_arms after update of active_run_id on machines for each row
  when (new.active_run_id is not null and new.active_run_id is distinct from old.active_run_id)
  execute function arm_with_run();
