-- A run is written again with every step that it comes further, and read with every look. Compressing it each time takes longer than
-- writing it: up to a page it is kept as it is.
alter table runs set (toast_tuple_target = 8160);
-- Runs are never deleted, so that their logs need nobody to ask, for each line, whether its run is there.
alter table run_logs drop constraint run_logs_run_id_fkey;
-- What changes about machines is mostly in no index; with room on its page such a change costs the indexes nothing.
alter table machines set (fillfactor = 85);
-- A run that begins to work is the machine's active one already.
drop trigger runs_note_active_on_update on runs;
create trigger runs_note_active_on_update after update of state on runs for each row
  when ((old.state in ('PENDING', 'RUNNING')) <> (new.state in ('PENDING', 'RUNNING'))) execute function note_active_run();
