-- On whose behalf a run works: a rack holds the claims on its devices, and the runs that it starts work under them.
-- Null: on the run's own behalf.
alter table runs add column holder_kind text, add column holder_id text;
alter table runs add constraint runs_holder_is_whole check ((holder_kind is null) = (holder_id is null));
