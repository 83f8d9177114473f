-- A change writes the search terms of the fields that it changed, and no others. Migration 0096 wrote all terms of a thing again when one
-- value changed: a shelf's first reading of its serial number cost the database as much as the transition that it came with.

-- The same terms as before, with four regular expressions for a value instead of two for each of its letters.
create or replace function search_terms_in(value text) returns table (term text, is_whole boolean) language plpgsql immutable as $$
declare
  small text := lower(value);
  rest text := small;
begin
  if small ~ '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' then
    return query select substr(replace(small, ':', ''), at), at = 1 from unnest(array[1, 7, 9]) as at;
  elsif small <> '' then
    for word in 1 .. 4 loop
      term := left(rest, 100);
      is_whole := word = 1;
      return next;
      -- From the beginning of the next word on, which is one of the first hundred letters.
      rest := substring(rest from '[-_./:@ ]([^-_./:@ ].*)$');
      exit when rest is null or length(small) - length(rest) >= 100;
    end loop;
  end if;
end $$;

-- The trigger's arguments: the kind, and the fields whose values changed.
create function note_search_fields() returns trigger language plpgsql as $$
begin
  delete from search_terms where kind = tg_argv[0] and id = new.id and field = any (tg_argv[1:]);
  insert into search_terms (kind, term, id, field, value, is_whole)
  select tg_argv[0], t.term, new.id, v.field, v.value, t.is_whole
    from search_values_of(new) as v, search_terms_in(v.value) as t where v.field = any (tg_argv[1:]) and v.value <> ''
      on conflict do nothing;
  return null;
end $$;

-- The same for a field of one value, which is a fact that the engine learns. The arguments: the kind, the field, and the fact.
create function note_search_fact() returns trigger language plpgsql as $$
declare
  known text := new.facts ->> tg_argv[2];
begin
  if old.facts ->> tg_argv[2] <> '' then
    delete from search_terms where kind = tg_argv[0] and id = new.id and field = tg_argv[1];
  end if;
  if known <> '' then
    insert into search_terms (kind, term, id, field, value, is_whole)
    select tg_argv[0], t.term, new.id, tg_argv[1], known, t.is_whole from search_terms_in(known) as t on conflict do nothing;
  end if;
  return null;
end $$;

-- A trigger for each set of columns that are written together. The engine writes `facts` and none of the other columns that are named
-- here, so that its updates compare what they read from devices, and nothing else.
drop trigger machines_search_again on machines;
create trigger machines_search_serial after update of serial, facts on machines for each row
  when (old.serial is distinct from new.serial or old.facts -> 'serial' is distinct from new.facts -> 'serial')
  execute function note_search_fields('machine', 'serial');
create trigger machines_search_macs after update of macs, facts on machines for each row
  when (old.macs is distinct from new.macs or old.facts -> 'macs' is distinct from new.facts -> 'macs')
  execute function note_search_fields('machine', 'mac');
create trigger machines_search_endpoints after update of bmc_endpoint, ssh_endpoint on machines for each row
  when (old.bmc_endpoint is distinct from new.bmc_endpoint or old.ssh_endpoint is distinct from new.ssh_endpoint)
  execute function note_search_fields('machine', 'bmc', 'ssh');

drop trigger power_shelves_search_again on power_shelves;
create trigger power_shelves_search_serial after update of facts on power_shelves for each row
  when (old.facts -> 'serial' is distinct from new.facts -> 'serial') execute function note_search_fact('power_shelf', 'serial', 'serial');
create trigger power_shelves_search_names after update of name, bmc_mac, bmc_address on power_shelves for each row
  when ((old.name, old.bmc_mac, old.bmc_address) is distinct from (new.name, new.bmc_mac, new.bmc_address))
  execute function note_search_fields('power_shelf', 'name', 'mac', 'bmc');

drop trigger switches_search_again on switches;
create trigger switches_search_serial after update of facts on switches for each row
  when (old.facts -> 'serial' is distinct from new.facts -> 'serial') execute function note_search_fact('switch', 'serial', 'serial');
create trigger switches_search_names after update of name, bmc_mac, bmc_address, nvos_macs on switches for each row
  when ((old.name, old.bmc_mac, old.bmc_address, old.nvos_macs) is distinct from (new.name, new.bmc_mac, new.bmc_address, new.nvos_macs))
  execute function note_search_fields('switch', 'name', 'mac', 'bmc');

drop trigger installs_search_again on installs;
create trigger installs_search_reports after update of facts on installs for each row
  when (old.facts -> 'hostname' is distinct from new.facts -> 'hostname' or old.facts -> 'ipAddress' is distinct from new.facts -> 'ipAddress'
        or old.facts -> 'serialNumber' is distinct from new.facts -> 'serialNumber')
  execute function note_search_fields('install', 'hostname', 'address', 'serial');
create trigger installs_search_mac after update of mac on installs for each row
  when (old.mac is distinct from new.mac) execute function note_search_fields('install', 'mac');

drop trigger fleet_nodes_search_again on fleet_nodes;
create trigger fleet_nodes_search_system after update of facts on fleet_nodes for each row
  when (old.facts -> 'systemId' is distinct from new.facts -> 'systemId') execute function note_search_fact('fleet_node', 'system_id', 'systemId');
create trigger fleet_nodes_search_names after update of hostname, ipmi_ip on fleet_nodes for each row
  when ((old.hostname, old.ipmi_ip) is distinct from (new.hostname, new.ipmi_ip))
  execute function note_search_fields('fleet_node', 'hostname', 'bmc');
