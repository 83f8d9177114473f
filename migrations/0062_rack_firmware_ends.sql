-- A request ends in the entry of the transition that its maintenance ends with, and only one that was withdrawn or displaced has an entry of its
-- own: the history of firmware has heard of the latter alone. And which devices a request names: it says nothing of the others.
alter table rack_firmware_applied add column scope jsonb;

create or replace function note_rack_firmware() returns trigger language plpgsql as $$
begin
  if new.type = 'requested' then
    insert into rack_firmware_applied (request_id, rack_id, requested_at, firmware_id, scope)
    values (new.data ->> 'request_id', new.id, new.at,
            (select nullif(a ->> 'firmware_version', '') from jsonb_array_elements(new.data -> 'activities') a
              where a ->> 'kind' = 'firmware_upgrade' limit 1), new.data -> 'scope')
    on conflict do nothing;
    delete from rack_firmware_applied where request_id in (
      select request_id from rack_firmware_applied where rack_id = new.id order by requested_at desc, request_id offset 250);
  elsif new.type = 'request_ended' then
    update rack_firmware_applied set outcome = new.data ->> 'outcome', ended_at = new.at, message = new.reason
     where request_id = new.data ->> 'id';
  else
    update rack_firmware_applied f set outcome = e ->> 'outcome', ended_at = new.at, message = e ->> 'message'
      from jsonb_array_elements(new.data -> 'ended') e where f.request_id = e -> 'request' ->> 'id';
  end if;
  return null;
end $$;
create trigger journal_transitions_rack_firmware after insert on journal for each row
  when (new.kind = 'rack' and new.data ? 'ended') execute function note_rack_firmware();
-- Without activities a request is for all of them, and so for firmware too.
drop trigger journal_requests_rack_firmware on journal;
create trigger journal_requests_rack_firmware after insert on journal for each row
  when (new.kind = 'rack' and new.type = 'requested' and new.data ? 'request_id'
        and (new.data -> 'activities' @> '[{"kind": "firmware_upgrade"}]' or new.data -> 'activities' = '[]'))
  execute function note_rack_firmware();

update rack_firmware_applied f set scope = j.data -> 'scope'
  from journal j where j.kind = 'rack' and j.id = f.rack_id and j.type = 'requested' and j.data ->> 'request_id' = f.request_id;
update rack_firmware_applied f set outcome = e ->> 'outcome', ended_at = j.at, message = e ->> 'message'
  from journal j, jsonb_array_elements(j.data -> 'ended') e
 where f.outcome is null and j.kind = 'rack' and j.id = f.rack_id and j.data ? 'ended' and f.request_id = e -> 'request' ->> 'id';
-- Of what the journal has forgotten, the rack itself knows whether it still waits.
update rack_firmware_applied f set outcome = 'unknown', ended_at = f.requested_at
 where f.outcome is null
   and not exists (select from racks r where r.id = f.rack_id and f.request_id in (r.maintenance_requested ->> 'id', r.state_data -> 'request' ->> 'id'));
