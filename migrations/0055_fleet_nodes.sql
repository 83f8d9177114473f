-- GPU nodes that are onboarded and decommissioned over MAAS, or by hand. Their jobs are runs that have them as their target.
create table fleet_nodes (
  id            text primary key check (id ~ '^fn-[a-z0-9-]{1,60}$'),
  site          text not null references fleet_sites (name),
  profile       text not null,
  sku           text not null,
  hostname      text not null,
  -- null for manual nodes whose BMC nobody named
  ipmi_ip       text,
  mode          text not null check (mode in ('maas', 'manual')),
  machine_id    text not null,
  -- by which request it was onboarded: the same request again finds it
  request_id    text not null unique,
  fingerprint   text not null,
  created_by    text not null,
  created_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}'
);
create index fleet_nodes_by_state on fleet_nodes (state, id);
create index fleet_nodes_by_profile on fleet_nodes (site, profile, id);
-- Whatever races: one live node a machine, a hostname of a site, and a BMC.
create unique index fleet_nodes_one_live on fleet_nodes (machine_id) where state <> 'deleted';
create unique index fleet_nodes_one_hostname on fleet_nodes (site, hostname) where state <> 'deleted';
create unique index fleet_nodes_one_bmc on fleet_nodes (ipmi_ip) where state <> 'deleted';
