-- The scripts of runs, as they were when their jobs began: a run goes on with its own text when a file has changed since, or is gone. Each
-- text is here once, however many runs have it. What no run has had for long is removed.
create table script_texts (
  ref     text        not null,
  -- sha256:…, of the text.
  digest  text        not null,
  -- shipped or site: shipped scripts run with the rights of root.
  origin  text        not null,
  -- Bytes, since a script may hold what no text of the database can.
  content bytea       not null check (octet_length(content) <= 98304),
  -- When a run was last started with it, to within a day.
  used_at timestamptz not null default now(),
  primary key (ref, digest)
);
create index script_texts_by_use on script_texts (used_at);

-- Of a migration that servers of the version before cannot work with. All others only add, and an earlier server may start on what it does not know.
alter table schema_migrations add column ends_earlier boolean not null default false;
