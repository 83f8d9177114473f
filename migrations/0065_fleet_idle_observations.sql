-- The latest job of the node when this was seen, where that job had ended: what MAAS shows afterwards, the job has not made. Null: a job was under
-- way, or an older server wrote the row.
alter table fleet_observations add column idle_run text;
