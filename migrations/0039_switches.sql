-- Switches of racks, and those that a site says it has: devices with a BMC, as power shelves are. Passwords are in the secret store
-- under bmc/<mac> and nvos/<mac of the BMC>.
create table switches (
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
  -- the MAC addresses of the switch's own operating system
  nvos_macs           text[] not null default '{}',
  enable_nmxc         boolean not null default true,
  created_at          timestamptz not null default now(),
  deleted_at          timestamptz,
  state               text not null,
  state_data          jsonb not null default '{}',
  state_version       bigint not null default 1,
  state_since         timestamptz not null default now(),
  outcome             jsonb,
  version             bigint not null default 1,
  basis               bigint not null default 1,
  facts               jsonb not null default '{}'
);
create index switches_by_state on switches (state, id);
create index switches_by_rack on switches (rack_id, id);
create index switches_by_name on switches (name);
create index switches_by_nvos_mac on switches using gin (nvos_macs);

create table expected_switches (
  id                   text primary key default gen_random_uuid()::text,
  name                 text not null default '',
  description          text not null default '',
  labels               jsonb not null default '{}',
  rack_id              text,
  bmc_mac              text not null unique,
  bmc_username         text not null,
  bmc_address          text,
  bmc_port             integer check (bmc_port between 1 and 65535),
  switch_serial_number text not null,
  bmc_retain_credentials boolean not null default false,
  nvos_macs            text[] not null default '{}',
  nvos_username        text,
  created_at           timestamptz not null default now(),
  state                text not null,
  state_data           jsonb not null default '{}',
  state_version        bigint not null default 1,
  state_since          timestamptz not null default now(),
  outcome              jsonb,
  version              bigint not null default 1,
  basis                bigint not null default 1,
  facts                jsonb not null default '{}'
);
create index expected_switches_by_switch on expected_switches ((facts ->> 'switchId'));
