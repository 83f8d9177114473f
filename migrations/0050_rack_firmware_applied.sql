-- Which firmware was requested of which rack, and how that ended: for as long as the rack's newest 250 requests, also when the journal has
-- forgotten them. The journal's own entries write it, in the commit that makes the request or ends it, whichever version the replica is of.
create table rack_firmware_applied (
  request_id   text primary key,
  rack_id      text not null,
  requested_at timestamptz not null,
  -- null: the default of the rack's hardware type
  firmware_id  text,
  -- null while the request has not ended
  outcome      text,
  ended_at     timestamptz,
  message      text
);
create index rack_firmware_applied_by_rack on rack_firmware_applied (rack_id, requested_at desc);
create index rack_firmware_applied_by_firmware on rack_firmware_applied (firmware_id, requested_at desc);
create index rack_firmware_applied_newest on rack_firmware_applied (requested_at desc);

create function note_rack_firmware() returns trigger language plpgsql as $$
begin
  if new.type = 'requested' then
    insert into rack_firmware_applied (request_id, rack_id, requested_at, firmware_id)
    values (new.data ->> 'request_id', new.id, new.at,
            (select nullif(a ->> 'firmware_version', '') from jsonb_array_elements(new.data -> 'activities') a
              where a ->> 'kind' = 'firmware_upgrade' limit 1))
    on conflict do nothing;
    delete from rack_firmware_applied where request_id in (
      select request_id from rack_firmware_applied where rack_id = new.id order by requested_at desc, request_id offset 250);
  else
    update rack_firmware_applied set outcome = new.data ->> 'outcome', ended_at = new.at, message = new.reason
     where request_id = new.data ->> 'id';
  end if;
  return null;
end $$;
create trigger journal_requests_rack_firmware after insert on journal for each row
  when (new.kind = 'rack' and new.type = 'requested' and new.data -> 'activities' @> '[{"kind": "firmware_upgrade"}]' and new.data ? 'request_id')
  execute function note_rack_firmware();
create trigger journal_ends_rack_firmware after insert on journal for each row
  when (new.kind = 'rack' and new.type = 'request_ended') execute function note_rack_firmware();

-- What was before is as far as the journal goes back.
insert into rack_firmware_applied (request_id, rack_id, requested_at, firmware_id, outcome, ended_at, message)
select j.data ->> 'request_id', j.id, j.at,
       (select nullif(a ->> 'firmware_version', '') from jsonb_array_elements(j.data -> 'activities') a
         where a ->> 'kind' = 'firmware_upgrade' limit 1),
       e.data ->> 'outcome', e.at, e.reason
  from journal j
       left join lateral (select x.data, x.at, x.reason from journal x
         where x.kind = 'rack' and x.id = j.id and x.type = 'request_ended' and x.data ->> 'id' = j.data ->> 'request_id'
         order by x.epoch desc, x.xid desc, x.seq desc limit 1) e on true
 where j.kind = 'rack' and j.type = 'requested' and j.data -> 'activities' @> '[{"kind": "firmware_upgrade"}]' and j.data ? 'request_id'
on conflict do nothing;
