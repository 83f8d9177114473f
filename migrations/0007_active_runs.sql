-- Which run is active on a machine follows from the runs alone, so the database itself keeps it beside the machine, where lists can
-- filter by it: no writer of runs can forget it.
create function note_active_run() returns trigger language plpgsql as $$
begin
  if new.state in ('PENDING', 'RUNNING') then
    update machines set active_run_id = new.id where id = new.machine_id and active_run_id is distinct from new.id;
  else
    update machines
       set active_run_id = case when active_run_id = new.id then null else active_run_id end, last_run_id = new.id
     where id = new.machine_id;
  end if;
  return null;
end $$;
create trigger runs_note_active_on_insert after insert on runs for each row execute function note_active_run();
create trigger runs_note_active_on_update after update of state on runs for each row
  when (old.state is distinct from new.state) execute function note_active_run();
