-- What a credential was given for: it opens a connection to that place alone. `bound_nonce` is the nonce of the value that was
-- bound: a replica of an earlier version writes another value and leaves these columns, and that value is then bound to nothing yet.
-- An unbound value is for the address that is on record; `bind-credentials.ts` binds it at the next start.
alter table secrets
  add column bound_to    text,
  -- The certificate that was pinned there when the record lost its pin with a change of address.
  add column bound_pin   text,
  add column bound_nonce bytea;

-- An unbound value whose address changes is bound to nowhere: what comes after is not what it was given for. A value that the same
-- transaction writes was given together with the address.
create function move_leaves_credentials(secret text) returns void language sql as $$
  update secrets set bound_to = '', bound_pin = null, bound_nonce = nonce
   where name = secret and bound_nonce is distinct from nonce and xmin <> pg_current_xact_id()::xid
$$;
-- A record that forgets the pinned certificate leaves the pin with the credential, unless that is given again at the same time.
create function keep_pin(secret text, pin text) returns void language sql as $$
  update secrets set bound_pin = pin where name = secret and bound_nonce = nonce and xmin <> pg_current_xact_id()::xid
$$;

create function note_machine_moved() returns trigger language plpgsql as $$
begin
  if (old.provider, old.bmc_endpoint, old.bmc_protocol, old.bmc_trust)
     is distinct from (new.provider, new.bmc_endpoint, new.bmc_protocol, new.bmc_trust) then
    perform move_leaves_credentials('bmc/' || new.id);
  end if;
  if old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null then
    perform keep_pin('bmc/' || new.id, old.facts ->> 'certificateFingerprint');
  end if;
  return null;
end $$;
create trigger machines_moved after update on machines for each row
  when ((old.provider, old.bmc_endpoint, old.bmc_protocol, old.bmc_trust)
          is distinct from (new.provider, new.bmc_endpoint, new.bmc_protocol, new.bmc_trust)
        or (old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null))
  execute function note_machine_moved();

create function note_device_moved() returns trigger language plpgsql as $$
begin
  if (old.bmc_address, old.bmc_port) is distinct from (new.bmc_address, new.bmc_port) then
    perform move_leaves_credentials('bmc/' || new.bmc_mac);
  end if;
  if old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null then
    perform keep_pin('bmc/' || new.bmc_mac, old.facts ->> 'certificateFingerprint');
  end if;
  return null;
end $$;
create trigger power_shelves_moved after update on power_shelves for each row
  when ((old.bmc_address, old.bmc_port) is distinct from (new.bmc_address, new.bmc_port)
        or (old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null))
  execute function note_device_moved();
create trigger switches_moved after update on switches for each row
  when ((old.bmc_address, old.bmc_port) is distinct from (new.bmc_address, new.bmc_port)
        or (old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null))
  execute function note_device_moved();
create trigger expected_power_shelves_moved after update on expected_power_shelves for each row
  when ((old.bmc_address, old.bmc_port) is distinct from (new.bmc_address, new.bmc_port)
        or (old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null))
  execute function note_device_moved();
create trigger expected_switches_moved after update on expected_switches for each row
  when ((old.bmc_address, old.bmc_port) is distinct from (new.bmc_address, new.bmc_port)
        or (old.facts ->> 'certificateFingerprint' is not null and new.facts ->> 'certificateFingerprint' is null))
  execute function note_device_moved();
