-- How the firmware of a machine as a tray is renewed, by its rack or by itself. The id is the machine's.
create table host_reprovisions (
  id            text primary key,
  created_at    timestamptz not null default now(),
  -- {id, initiator, requested_at, reset}: set by a request, cleared by the transition that ends it
  reprovision_requested    jsonb,
  last_reprovision_request jsonb,
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}'
);
create index host_reprovisions_by_state on host_reprovisions (state, id);
insert into host_reprovisions (id, state) select id, 'ready' from machines;
