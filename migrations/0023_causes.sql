-- Why the last pass at a thing failed, for programs: one of the causes of kernel/causes.ts. Null for passes of an older version.
alter table work add column last_cause text;

-- Whether a piece of a run's log is a line of the server's own, and not what a script wrote. Null for what an older version kept.
alter table run_logs add column ours boolean;
