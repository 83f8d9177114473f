-- The tasks of all nodes, the newest first.
create index fleet_tasks_by_time on fleet_tasks (created_at, id);
