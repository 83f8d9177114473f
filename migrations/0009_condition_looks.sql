-- When each machine is to be looked at next, to keep its conditions true. A row of its own, since it is written with every look and
-- the machine is not.
create table condition_looks (
  machine_id text primary key references machines (id) on delete cascade,
  -- While a replica looks, this is the end of its lease: one that dies leaves nothing behind that would not fall due by itself.
  due_at     timestamptz not null,
  lease_owner text,
  -- Goes up with every claim: whoever looked under an earlier one writes nothing any more.
  epoch      bigint not null default 0,
  -- Looks in a row that found a condition untrue which is not believed yet, by its type.
  misses     jsonb not null default '{}',
  looked_at  timestamptz
) with (fillfactor = 70);
create index condition_looks_due on condition_looks (due_at);

-- Spread, so that a fleet that is there already does not fall due as one.
insert into condition_looks (machine_id, due_at)
select id, now() + random() * interval '10 seconds' from machines where state <> 'RETIRED';

-- Which machines are looked at follows from the machines alone, so the database itself keeps it: no writer of machines can forget
-- it. What changes about a machine is looked at again soon; under a lease the look that follows comes at its usual time.
create function note_condition_look() returns trigger language plpgsql as $$
begin
  if new.state = 'RETIRED' then
    delete from condition_looks where machine_id = new.id;
  else
    -- Credentials follow the registration, and those who register many are not to be slowed by looks at the first.
    insert into condition_looks (machine_id, due_at) values (new.id, now() + (1 + random() * 2) * interval '1 second')
    on conflict (machine_id) do update set due_at = least(condition_looks.due_at, now())
    where condition_looks.lease_owner is null;
  end if;
  return null;
end $$;
create trigger machines_note_look_on_insert after insert on machines for each row execute function note_condition_look();
create trigger machines_note_look_on_update
  after update of state, provider, serial, target_cluster, ssh_endpoint, ssh_host_key, jump_hosts, bmc_endpoint on machines
  for each row
  when ((old.state, old.provider, old.serial, old.target_cluster, old.ssh_endpoint, old.ssh_host_key, old.jump_hosts, old.bmc_endpoint)
        is distinct from
        (new.state, new.provider, new.serial, new.target_cluster, new.ssh_endpoint, new.ssh_host_key, new.jump_hosts, new.bmc_endpoint))
  execute function note_condition_look();
