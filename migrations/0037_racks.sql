-- Racks. A rack comes on record when the first device names it; what it consists of is read from the devices' own rows.
create table racks (
  id                  text primary key check (length(id) between 1 and 64),
  name                text not null default '',
  description         text not null default '',
  labels              jsonb not null default '{}',
  metadata_version    bigint not null default 1,
  metadata_changed_at timestamptz not null default now(),
  rack_profile_id     text,
  created_at          timestamptz not null default now(),
  deleted_at          timestamptz,
  -- {id, initiator, requested_at, scope, activities, …}: set by a request, cleared by the transition that ends it
  maintenance_requested     jsonb,
  last_maintenance_request  jsonb,
  reprovision_requested     jsonb,
  last_reprovision_request  jsonb,
  state               text not null,
  state_data          jsonb not null default '{}',
  state_version       bigint not null default 1,
  state_since         timestamptz not null default now(),
  outcome             jsonb,
  version             bigint not null default 1,
  basis               bigint not null default 1,
  facts               jsonb not null default '{}'
);
create index racks_by_state on racks (state, id);

-- Racks that devices on record name already.
insert into racks (id, name, state)
select distinct named.id, named.id, 'created'
  from (select rack as id from machines where state <> 'RETIRED' union select rack_id from power_shelves) as named
 where length(named.id) between 1 and 64
on conflict (id) do nothing;
