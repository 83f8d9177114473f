-- MAAS regions that GPU nodes are onboarded through. The API key of a site is in the secret store.
create table fleet_sites (
  name           text primary key check (length(name) between 1 and 63),
  url            text not null,
  description    text not null default '',
  -- refused for new work while false
  is_enabled     boolean not null default true,
  -- whether a machine stays in MAAS when its node is removed
  retain_in_maas boolean not null default false,
  created_by     text not null,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now()
);
-- How nodes of one kind of hardware are brought up at a site.
create table fleet_profiles (
  site       text not null references fleet_sites (name),
  name       text not null check (length(name) between 1 and 63),
  -- the policy fields that differ from their defaults
  policy     jsonb not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (site, name)
);
