-- The racks that a site says it has; the id is the rack's own.
create table expected_racks (
  id              text primary key check (length(id) between 1 and 64),
  name            text not null default '',
  description     text not null default '',
  labels          jsonb not null default '{}',
  rack_profile_id text not null,
  created_at      timestamptz not null default now(),
  state           text not null,
  state_data      jsonb not null default '{}',
  state_version   bigint not null default 1,
  state_since     timestamptz not null default now(),
  outcome         jsonb,
  version         bigint not null default 1,
  basis           bigint not null default 1,
  facts           jsonb not null default '{}'
);
create index expected_racks_by_profile on expected_racks (rack_profile_id);

-- What racks of one kind consist of. Each of the three is {name?, count, vendor?, slot_ids, watts?}.
create table rack_profiles (
  name          text primary key check (length(name) between 1 and 64),
  hardware_type text,
  topology      text,
  class         text check (class in ('dev', 'prod')),
  compute       jsonb not null,
  switches      jsonb not null,
  power_shelves jsonb not null,
  created_by    text not null,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now()
);
