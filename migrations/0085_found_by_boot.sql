-- Nodes that only a boot from the network has put on record: anybody on that network can make one, with any address. They are counted, checked
-- by nobody until they are approved, and forgotten.
alter table installs add column found_by_boot boolean not null default false;
update installs i set found_by_boot = true
 where i.state = 'discovered'
   and exists (select from journal j where j.kind = 'install' and j.id = i.id and j.type = 'created' and j.actor = 'node ' || i.mac);
create index installs_found_by_boot on installs (id) where found_by_boot and state = 'discovered';

-- Here, so that no way to these states forgets it. A machine that has an endpoint is its owner's, and is checked as always.
create function note_found_by_boot() returns trigger language plpgsql as $$
begin
  if new.state = 'discovered' then
    delete from condition_looks l using machines m
     where l.machine_id = new.id and m.id = new.id and m.bmc_endpoint is null and m.ssh_endpoint is null;
  else
    insert into condition_looks (machine_id, due_at)
    select m.id, now() + interval '1 second' from machines m where m.id = new.id and m.state <> 'RETIRED'
    on conflict (machine_id) do nothing;
  end if;
  return null;
end $$;
create trigger installs_found after insert on installs for each row
  when (new.found_by_boot and new.state = 'discovered') execute function note_found_by_boot();
create trigger installs_found_no_more after update of state on installs for each row
  when (new.found_by_boot and old.state = 'discovered' and new.state <> 'discovered') execute function note_found_by_boot();

delete from condition_looks l using installs i, machines m
 where l.machine_id = i.id and m.id = i.id and i.found_by_boot and i.state = 'discovered'
   and m.bmc_endpoint is null and m.ssh_endpoint is null;

-- When something was last heard at the address that a BMC was given for its events; the replica that holds the subscription reads it.
alter table event_streams add column heard_at timestamptz;
