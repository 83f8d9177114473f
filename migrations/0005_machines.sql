-- Machines: what their owners say about them (spec, labels), what is known of them (conditions, facts), and their phase.
create table machines (
  id             text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  labels         jsonb not null default '{}',
  provider       text not null,
  serial         text,
  macs           text[] not null default '{}',
  rack           text,
  slot           text,
  location       text,
  customer_id    text,
  target_cluster text,
  -- As they were given: host, host:port; a BMC also with http:// or https:// before it.
  ssh_endpoint   text,
  ssh_host_key   text,
  -- [{endpoint, host_key, username}], the nearest to the server first
  jump_hosts     jsonb not null default '[]',
  bmc_endpoint   text,
  bmc_protocol   text check (bmc_protocol in ('redfish', 'ipmi')),
  bmc_trust      text not null default 'pin' check (bmc_trust in ('ca', 'pin', 'off')),
  -- [{type, status, reason, message, last_transition}], each type at most once
  conditions     jsonb not null default '[]',
  -- what ended runs could not undo, for people
  residue        jsonb not null default '[]',
  created_at     timestamptz not null default now(),
  state          text not null,
  state_data     jsonb not null default '{}',
  state_version  bigint not null default 1,
  state_since    timestamptz not null default now(),
  outcome        jsonb,
  version        bigint not null default 1,
  basis          bigint not null default 1,
  facts          jsonb not null default '{}',
  -- The run that is PENDING or RUNNING, and the last one that ended; the table of runs keeps both current.
  active_run_id  text,
  last_run_id    text,
  in_customer_cluster boolean generated always as (conditions @> '[{"type": "InCustomerCluster", "status": true}]') stored
);
create index machines_by_state on machines (state, id);
create index machines_by_rack on machines (rack, id);
create index machines_by_provider on machines (provider, id);
create index machines_by_customer on machines (customer_id, id);
create index machines_by_cluster on machines (target_cluster, id);
create index machines_by_serial on machines (serial);
create index machines_by_label on machines using gin (labels jsonb_path_ops);
-- The expression of src/lifecycles/machine/effective-state.ts; a test fails when the filter no longer uses this index.
create index machines_by_effective_state on machines (
  (case when active_run_id is not null then 'PROVISIONING'
        when state in ('RMA', 'RETIRED', 'MAINTENANCE') then state
        when in_customer_cluster then 'IN_SERVICE'
        when state = 'FACTORY_READY' then 'FACTORY_READY'
        else 'READY' end), id);

-- What tells machines apart: each MAC address, serial and BMC belongs to one machine, until that is retired.
create table machine_identities (
  kind       text not null check (kind in ('mac', 'serial', 'bmc')),
  value      text not null,
  machine_id text not null references machines (id) on delete cascade,
  primary key (kind, value)
);
create index machine_identities_by_machine on machine_identities (machine_id);

-- Plans that callers made; the built-in ones are part of the server. Ids are compared as the server itself compares them.
create table plans (
  plan_id      text collate "C" primary key,
  display_name text not null,
  -- validated, with the defaults filled in
  steps        jsonb not null,
  created_at   timestamptz not null default now(),
  created_by   text not null
);

-- Kubernetes clusters. Their kubeconfigs are in the secret store under cluster/<name>.
create table clusters (
  name       text collate "C" primary key,
  api_url    text not null,
  created_at timestamptz not null default now(),
  created_by text not null
);

create table images (
  name          text collate "C" primary key,
  kind          text not null check (kind in ('iso', 'disk')),
  location      text not null,
  digest        text not null check (digest ~ '^sha256:[0-9a-f]{64}$'),
  success_proof text not null check (success_proof in ('token', 'ssh')),
  created_at    timestamptz not null default now(),
  created_by    text not null
);
