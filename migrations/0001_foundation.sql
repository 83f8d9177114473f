-- Things with a lifecycle. Every such table has the same eight columns for it, and store/transitions.ts alone writes them:
--   state, state_data     the table's word, and what the transition into it carried
--   state_version, state_since
--   outcome               why it is still here: what it waits for, or what failed last
--   version               grows with every write; events carry it
--   basis                 grows with what guards and handlers read; an outcome worked out from an older one is dropped
--   facts                 what was read from the device

create table power_shelves (
  id                  text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  name                text not null,
  description         text not null default '',
  labels              jsonb not null default '{}',
  metadata_version    bigint not null default 1,
  metadata_changed_at timestamptz not null default now(),
  rack_id             text,
  bmc_mac             text not null unique,
  bmc_address         text not null,
  bmc_port            integer not null check (bmc_port between 1 and 65535),
  bmc_scheme          text not null default 'https' check (bmc_scheme in ('https', 'http')),
  bmc_trust           text not null default 'pin' check (bmc_trust in ('ca', 'pin', 'off')),
  created_at          timestamptz not null default now(),
  deleted_at          timestamptz,
  -- {id, operation, initiator, requested_at}: set by a request, cleared by the transition that ends it
  power_shelf_maintenance_requested jsonb,
  last_maintenance_request          jsonb,
  state               text not null,
  state_data          jsonb not null default '{}',
  state_version       bigint not null default 1,
  state_since         timestamptz not null default now(),
  outcome             jsonb,
  version             bigint not null default 1,
  basis               bigint not null default 1,
  facts               jsonb not null default '{}'
);
create index power_shelves_by_state on power_shelves (state, id);
create index power_shelves_by_rack on power_shelves (rack_id, id);
create index power_shelves_by_name on power_shelves (name);

-- What a site says it has. Passwords are in the secret store under bmc/<mac>.
create table expected_power_shelves (
  id                  text primary key default gen_random_uuid()::text,
  name                text not null default '',
  description         text not null default '',
  labels              jsonb not null default '{}',
  rack_id             text,
  bmc_mac             text not null unique,
  bmc_username        text not null,
  bmc_address         text,
  bmc_port            integer check (bmc_port between 1 and 65535),
  shelf_serial_number text not null,
  bmc_retain_credentials boolean not null default false,
  created_at          timestamptz not null default now(),
  state               text not null,
  state_data          jsonb not null default '{}',
  state_version       bigint not null default 1,
  state_since         timestamptz not null default now(),
  outcome             jsonb,
  version             bigint not null default 1,
  basis               bigint not null default 1,
  facts               jsonb not null default '{}'
);
create index expected_power_shelves_by_shelf on expected_power_shelves ((facts ->> 'powerShelfId'));

-- Health as reported by others, one report a source.
create table health_reports (
  kind        text not null,
  id          text not null,
  source      text not null,
  mode        text not null check (mode in ('merge', 'replace')),
  report      jsonb not null,
  updated_at  timestamptz not null default now(),
  primary key (kind, id, source)
);

-- "Look at this thing." Truth is in the things' own rows, so that a lost, repeated or late look is harmless.
-- A claim sets wake_at = lease_until: a dead owner's work falls due by itself, and an earlier wake_at under a lease means
-- that somebody woke the thing meanwhile.
create table work (
  kind        text not null,
  id          text not null,
  wake_at     timestamptz not null default now(),
  lease_until timestamptz,
  lease_owner text,
  epoch       bigint not null default 0,
  failures    integer not null default 0,
  last_error  text,
  primary key (kind, id)
) with (fillfactor = 70);
create index work_due on work ((greatest(wake_at, coalesce(lease_until, '-infinity'::timestamptz))));
create index work_by_owner on work (lease_owner) where lease_owner is not null;

-- The right to work on a thing: one granted claim each, the others in the order in which they came.
create table claims (
  seq          bigint generated always as identity primary key,
  thing_kind   text not null,
  thing_id     text not null,
  holder_kind  text not null,
  holder_id    text not null,
  reason       text not null,
  requested_at timestamptz not null default now(),
  granted_at   timestamptz,
  unique (thing_kind, thing_id, holder_kind, holder_id)
);
create unique index claims_granted_once on claims (thing_kind, thing_id) where granted_at is not null;
create index claims_by_holder on claims (holder_kind, holder_id);

-- History, audit and events in one. A row's key holds its transaction, so that readers who stay below the snapshot's xmin
-- see every row exactly once. Transaction ids start anew in a restored dump: the epoch then grows.
create table journal_epoch (
  only_row boolean primary key default true check (only_row),
  epoch    integer not null default 1,
  -- the cursor up to which retention has removed entries
  forgotten_to text not null default '0.0.0'
);
insert into journal_epoch default values;

create table journal (
  epoch      integer not null,
  xid        xid8 not null default pg_current_xact_id(),
  seq        bigint generated always as identity,
  at         timestamptz not null default now(),
  kind       text not null,
  id         text not null,
  version    bigint not null,
  type       text not null,
  from_state text,
  to_state   text,
  owner      text,
  actor      text not null,
  address    text, -- where the call came from, for what callers did
  reason     text,
  data       jsonb not null default '{}',
  primary key (epoch, xid, seq)
);
create index journal_by_thing on journal (kind, id, epoch, xid, seq);

-- Answers of calls that carried an idempotency key. The scope names the method and its caller.
create table idempotency_keys (
  scope       text not null,
  key         text not null,
  fingerprint text not null,
  thing_id    text not null,
  created_at  timestamptz not null default now(),
  primary key (scope, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);
