-- MAC addresses that the BMCs of machines report (facts -> 'macs'), beside those that owners give (machine_identities). Several BMCs
-- may report one address. The database itself keeps them: no writer of facts can forget it.
create table machine_seen_macs (
  mac        text not null,
  machine_id text not null references machines (id) on delete cascade,
  primary key (mac, machine_id)
);
create index machine_seen_macs_by_machine on machine_seen_macs (machine_id);

create function macs_seen_of(machine machines) returns setof text language sql stable as $$
  select distinct lower(mac)
    from jsonb_array_elements_text(case when jsonb_typeof(machine.facts -> 'macs') = 'array' and machine.state <> 'RETIRED'
                                        then machine.facts -> 'macs' else '[]' end) as mac
   -- neither zeros nor a group address, which many machines have alike
   where mac ~* '^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$' and mac <> '00:00:00:00:00:00'
$$;
create function note_seen_macs() returns trigger language plpgsql as $$
begin
  delete from machine_seen_macs where machine_id = new.id and mac not in (select macs_seen_of(new));
  insert into machine_seen_macs (mac, machine_id) select macs_seen_of(new), new.id on conflict do nothing;
  return null;
end $$;
create trigger machines_note_seen_macs_on_insert after insert on machines for each row
  when (new.facts ? 'macs') execute function note_seen_macs();
create trigger machines_note_seen_macs_on_update after update of facts, state on machines for each row
  when ((old.facts -> 'macs') is distinct from (new.facts -> 'macs') or (old.state = 'RETIRED') <> (new.state = 'RETIRED'))
  execute function note_seen_macs();

-- Earlier versions also recorded ports between host and BMC, which have one address on every machine of a maker: what several machines
-- report already identifies none of them.
insert into machine_seen_macs (mac, machine_id)
select mac, min(machine_id) from (select macs_seen_of(m) as mac, m.id as machine_id from machines m) as seen group by mac having count(*) = 1;
