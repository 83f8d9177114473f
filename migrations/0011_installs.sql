-- What is installed over the network: a recipe that the boot script is made from, and where a complete install leads.
create table install_workflows (
  id             text collate "C" primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
  name           text not null,
  description    text not null default '',
  os_family      text not null check (os_family in ('linux', 'windows', 'bsd')),
  architecture   text not null check (architecture in ('x86_64', 'arm64', 'aarch64')),
  boot_mode      text not null check (boot_mode in ('bios', 'uefi', 'any')),
  install_method text not null check (install_method in ('kernel', 'sanboot', 'chain', 'image')),
  -- by install_method: {kernel_url, initrd_url, cmdline} or {sanboot_url} or {chain_url} or {image_url, image_digest, target_device}
  boot           jsonb not null default '{}',
  steps          jsonb not null default '[]',
  next_state     text not null default 'installed' check (next_state in ('installed', 'active')),
  is_active      boolean not null default true,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  created_by     text not null
);
-- A workflow that was deleted gives its name back; nodes that had it still find what it was.
create unique index install_workflows_by_name on install_workflows (name) where is_active;

-- Groups of devices, nested. What a group does not say, the next one above that does says for it; the effective columns hold
-- the answer, and whoever changes a group works them out anew.
create table device_groups (
  id                      text collate "C" primary key,
  name                    text not null unique,
  description             text not null default '',
  parent_id               text collate "C" references device_groups (id),
  default_workflow_id     text collate "C" references install_workflows (id),
  auto_provision          boolean,
  auto_promote            boolean,
  effective_workflow_id   text collate "C",
  effective_auto_provision boolean not null default false,
  effective_auto_promote  boolean not null default false,
  -- /root/child/this, so that all below a group are one range
  path                    text collate "C" not null,
  depth                   integer not null default 0 check (depth between 0 and 15),
  created_at              timestamptz not null default now(),
  updated_at              timestamptz not null default now()
);
create index device_groups_by_parent on device_groups (parent_id, name);
create index device_groups_by_path on device_groups (path);

-- A machine seen through its install; at most one a machine, under the machine's id.
create table installs (
  id            text primary key references machines (id),
  mac           text not null,
  arch          text not null default 'x86_64' check (arch in ('x86_64', 'arm64', 'aarch64')),
  boot_mode     text not null default 'bios' check (boot_mode in ('bios', 'uefi')),
  group_id      text collate "C" references device_groups (id),
  workflow_id   text collate "C" references install_workflows (id),
  tags          text[] not null default '{}',
  -- SHA-256 of what the reports of the present boot must show
  report_token_hash text,
  -- what the system that a run has installed shows of itself, so that the run knows it by it
  order_stamp   text,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  -- installAttempts, lastInstallError, progress, attemptStartedAt, attemptFailed, what the node told of itself, which run
  -- ordered it (orderedBy, orderId, tokenShown), erasedDisks
  facts         jsonb not null default '{}'
);
create index installs_by_state on installs (state, id);
create index installs_by_group on installs (group_id, id);
create index installs_by_workflow on installs (workflow_id);
create index installs_by_tag on installs using gin (tags);
create index installs_by_creation on installs (created_at, id);
-- Who is replaced by whom: asked when a replacement proves itself.
create index installs_by_replacement on installs ((state_data ->> 'replacement')) where state = 'migrating';

-- Whatever changes a node, however: so that no writer can forget it.
create function touch_updated_at() returns trigger language plpgsql as $$
begin
  new.updated_at := now();
  return new;
end $$;
create trigger installs_updated before update on installs for each row execute function touch_updated_at();

-- What an earlier boot was handed says nothing of what begins now: neither of the next install nor of the erasing of disks.
create function forget_report_token() returns trigger language plpgsql as $$
begin
  new.report_token_hash := null;
  return new;
end $$;
create trigger installs_begun_anew before update on installs for each row
  when (new.state <> old.state and new.state in ('pending', 'deprovisioning')) execute function forget_report_token();

-- An image that is installed over the network: its location is the workflow that does it.
alter table images drop constraint images_kind_check;
alter table images add constraint images_kind_check check (kind in ('iso', 'disk', 'netboot'));
