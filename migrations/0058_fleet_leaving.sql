-- The ports of a node that are linked with an address of their own while it is onboarded (RoCE), by the node's host name: they may be recorded
-- before there is a node.
create table fleet_roce_links (
  site       text not null references fleet_sites (name),
  hostname   text not null check (length(hostname) between 1 and 253),
  -- the port, as MAAS calls it, or its MAC address
  port       text not null check (length(port) between 1 and 63),
  subnet     cidr not null,
  ip_address inet not null check (ip_address <<= subnet),
  created_by text not null,
  created_at timestamptz not null default now(),
  primary key (site, hostname, port),
  unique (site, ip_address)
);

-- Who uses a fleet node, or is about to.
create table fleet_allocations (
  id            text primary key check (length(id) between 1 and 63),
  node          text not null,
  -- for people and for the allocator: whom it is for
  tenant        text not null,
  -- of the caller that asked for it: asked for twice, there is one
  request_id    text not null,
  created_by    text not null,
  created_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}',
  unique (node, request_id)
);
create index fleet_allocations_by_state on fleet_allocations (state, id);
create index fleet_allocations_open on fleet_allocations (node) where state not in ('released', 'failed');
