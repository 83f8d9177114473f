-- A boot whose MAC address belongs to a machine, and whose serial number or system UUID is another's. One row a machine: anybody on the boot
-- network can cause it, so that no row is added a boot.
create table strange_boots (
  machine_id  text primary key references machines (id) on delete cascade,
  mac         text not null,
  serial      text not null,
  system_uuid text not null,
  address     text,
  -- when the row was last told as an event: what it says of the boot is of then
  told_at     timestamptz not null,
  last_at     timestamptz not null
);

-- An install keeps its address also where neither owner nor BMC names it any more.
create index installs_by_mac on installs (mac) where state <> 'retired';

-- When the BMC was last asked for MAC addresses. Spread, so that not all of them are asked again at once.
alter table condition_looks add column macs_read_at timestamptz;
update condition_looks set macs_read_at = now() - random() * interval '12 hours';
