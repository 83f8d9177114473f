-- What nobody may use as long as a claim stands, as 'kind/id': machines, or racks for all of their trays. An older server writes none;
-- what its racks hold is kept unused by the claims on the machines themselves.
alter table claims add column unused text[] not null default '{}';
update claims set unused = array['machine/' || thing_id]
 where thing_kind = 'machine' and coalesce(behalf_kind, holder_kind) in ('rack', 'host_reprovision');

-- Where the operating system of a switch is reached, where its BMC does not report it: host, or host:port. The label nvos_address of the
-- switch said so before, and anybody who may label a switch could have its password sent elsewhere. The label is carried over only where
-- the certificate at that address is pinned: there the address decides nothing any more.
alter table expected_switches add column nvos_address text;
alter table switches add column nvos_address text;
update switches set nvos_address = labels ->> 'nvos_address'
 where facts ->> 'nvosCertificateFingerprint' is not null and labels ->> 'nvos_address' = facts ->> 'nvosAddress'
   and labels ->> 'nvos_address' ~ '^([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$';
update expected_switches e set nvos_address = s.nvos_address
  from switches s where s.id = e.facts ->> 'switchId' and s.nvos_address is not null;
