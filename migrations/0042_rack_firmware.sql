-- The catalogue of rack firmware. A record is of use to racks once all of its files are here whole: then its state is available.
create table rack_firmware (
  id            text primary key check (length(id) between 1 and 256),
  -- the document that it was made from, word for word
  config        text not null,
  -- [{device, component, class, version, digest, targets, activation, order, file: {name, url, bytes, sign}}]
  components    jsonb not null,
  hardware_type text not null,
  is_default    boolean not null default false,
  created_by    text,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}'
);
-- What racks of a hardware type get where nobody names a version: one record at most.
create unique index rack_firmware_one_default on rack_firmware (hardware_type) where is_default;
create index rack_firmware_by_type on rack_firmware (hardware_type, id);
