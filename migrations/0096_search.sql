-- What one search box finds: ids, names, hostnames, serials, MAC addresses and addresses, each from its beginning and from the beginning of
-- each of its words. A table of its own, so that the tables of things, which every transition writes, get no index more. The database
-- itself keeps it: no writer can forget it.
create table search_terms (
  kind     text not null,
  -- in small letters; MAC addresses without colons
  term     text collate "C" not null,
  id       text not null,
  field    text not null,
  -- the value as the thing has it
  value    text not null,
  -- the term is the whole value, and not the end of it
  is_whole boolean not null,
  primary key (kind, term, id, field)
);
create index search_terms_by_thing on search_terms (kind, id);

-- The value from its beginning and from each of its next three words; a MAC address also from its fourth and fifth octet.
create function search_terms_in(value text) returns table (term text, is_whole boolean) language plpgsql immutable as $$
declare
  small text := lower(value);
begin
  if small ~ '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' then
    return query select substr(replace(small, ':', ''), at), at = 1 from unnest(array[1, 7, 9]) as at;
  else
    return query select left(substr(small, at), 100), at = 1
      from generate_series(1, least(length(small), 100)) as at
     where at = 1 or (substr(small, at - 1, 1) ~ '[-_./:@ ]' and substr(small, at, 1) !~ '[-_./:@ ]')
     order by at limit 4;
  end if;
end $$;
create function search_host(endpoint text) returns text language sql immutable as $$
  select regexp_replace(regexp_replace(endpoint, '^[a-z]+://', ''), ':[0-9]+$', '')
$$;

-- Not declared as stable: PostgreSQL 18 then writes them into the query that calls them, and finds no plan for it.
create function search_values_of(thing machines) returns table (field text, value text) language sql as $$
  select 'id', thing.id
  union all select 'serial', thing.serial
  union all select 'serial', thing.facts ->> 'serial'
  union all select 'bmc', search_host(thing.bmc_endpoint)
  union all select 'ssh', search_host(thing.ssh_endpoint)
  union all select 'mac', lower(mac) from unnest(thing.macs) as mac
  union all select 'mac', lower(mac) from jsonb_array_elements_text(
    case when jsonb_typeof(thing.facts -> 'macs') = 'array' then thing.facts -> 'macs' else '[]' end) as mac
$$;
create function search_values_of(thing racks) returns table (field text, value text) language sql as $$
  select 'id', thing.id union all select 'name', thing.name
$$;
create function search_values_of(thing power_shelves) returns table (field text, value text) language sql as $$
  select 'id', thing.id union all select 'name', thing.name union all select 'mac', lower(thing.bmc_mac)
  union all select 'bmc', thing.bmc_address union all select 'serial', thing.facts ->> 'serial'
$$;
create function search_values_of(thing switches) returns table (field text, value text) language sql as $$
  select 'id', thing.id union all select 'name', thing.name union all select 'mac', lower(thing.bmc_mac)
  union all select 'bmc', thing.bmc_address union all select 'serial', thing.facts ->> 'serial'
  union all select 'mac', lower(mac) from unnest(thing.nvos_macs) as mac
$$;
create function search_values_of(thing installs) returns table (field text, value text) language sql as $$
  select 'id', thing.id union all select 'mac', lower(thing.mac) union all select 'hostname', thing.facts ->> 'hostname'
  union all select 'address', thing.facts ->> 'ipAddress' union all select 'serial', thing.facts ->> 'serialNumber'
$$;
create function search_values_of(thing fleet_nodes) returns table (field text, value text) language sql as $$
  select 'id', thing.id union all select 'hostname', thing.hostname union all select 'bmc', thing.ipmi_ip
  union all select 'system_id', thing.facts ->> 'systemId'
$$;
create function search_values_of(thing runs) returns table (field text, value text) language sql as $$
  select 'id', thing.id
$$;

-- The kind is the trigger's argument; `new` has the row type of its table.
create function note_search_terms() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    delete from search_terms where kind = tg_argv[0] and id = old.id;
  end if;
  if tg_op <> 'DELETE' then
    insert into search_terms (kind, term, id, field, value, is_whole)
    select tg_argv[0], t.term, new.id, v.field, v.value, t.is_whole
      from search_values_of(new) as v, search_terms_in(v.value) as t where v.value <> ''
        on conflict do nothing;
  end if;
  return null;
end $$;

create trigger machines_search after insert or delete on machines for each row execute function note_search_terms('machine');
create trigger machines_search_again after update of serial, bmc_endpoint, ssh_endpoint, macs, facts on machines for each row
  when ((old.serial, old.bmc_endpoint, old.ssh_endpoint, old.macs, old.facts -> 'serial', old.facts -> 'macs')
        is distinct from (new.serial, new.bmc_endpoint, new.ssh_endpoint, new.macs, new.facts -> 'serial', new.facts -> 'macs'))
  execute function note_search_terms('machine');
create trigger racks_search after insert or delete or update of name on racks for each row execute function note_search_terms('rack');
create trigger power_shelves_search after insert or delete on power_shelves for each row execute function note_search_terms('power_shelf');
create trigger power_shelves_search_again after update of name, bmc_mac, bmc_address, facts on power_shelves for each row
  when ((old.name, old.bmc_mac, old.bmc_address, old.facts -> 'serial') is distinct from (new.name, new.bmc_mac, new.bmc_address, new.facts -> 'serial'))
  execute function note_search_terms('power_shelf');
create trigger switches_search after insert or delete on switches for each row execute function note_search_terms('switch');
create trigger switches_search_again after update of name, bmc_mac, bmc_address, nvos_macs, facts on switches for each row
  when ((old.name, old.bmc_mac, old.bmc_address, old.nvos_macs, old.facts -> 'serial')
        is distinct from (new.name, new.bmc_mac, new.bmc_address, new.nvos_macs, new.facts -> 'serial'))
  execute function note_search_terms('switch');
create trigger installs_search after insert or delete on installs for each row execute function note_search_terms('install');
create trigger installs_search_again after update of mac, facts on installs for each row
  when ((old.mac, old.facts -> 'hostname', old.facts -> 'ipAddress', old.facts -> 'serialNumber')
        is distinct from (new.mac, new.facts -> 'hostname', new.facts -> 'ipAddress', new.facts -> 'serialNumber'))
  execute function note_search_terms('install');
create trigger fleet_nodes_search after insert or delete on fleet_nodes for each row execute function note_search_terms('fleet_node');
create trigger fleet_nodes_search_again after update of hostname, ipmi_ip, facts on fleet_nodes for each row
  when ((old.hostname, old.ipmi_ip, old.facts -> 'systemId') is distinct from (new.hostname, new.ipmi_ip, new.facts -> 'systemId'))
  execute function note_search_terms('fleet_node');
create trigger runs_search after insert or delete on runs for each row execute function note_search_terms('run');

insert into search_terms (kind, term, id, field, value, is_whole)
select k.kind, t.term, k.id, k.field, k.value, t.is_whole
  from (select 'machine' as kind, m.id, v.* from machines m, search_values_of(m) as v
        union all select 'rack', r.id, v.* from racks r, search_values_of(r) as v
        union all select 'power_shelf', p.id, v.* from power_shelves p, search_values_of(p) as v
        union all select 'switch', s.id, v.* from switches s, search_values_of(s) as v
        union all select 'install', i.id, v.* from installs i, search_values_of(i) as v
        union all select 'fleet_node', f.id, v.* from fleet_nodes f, search_values_of(f) as v
        union all select 'run', r.id, v.* from runs r, search_values_of(r) as v) as k, search_terms_in(k.value) as t
 where k.value <> '' on conflict do nothing;
