-- A rack is loaded with the runs that work on its devices: one look a device, at every pass.
create index runs_at_work on runs (target_kind, target_id) where state = 'RUNNING';
