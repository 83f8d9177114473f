-- A boot counts only where it was expected: what arms the next one, and which one is the present one. `boot`: id, armedBy, at, address,
-- identity, others (addresses that asked for the same script), contestedAt.
alter table installs
  add column armed_at timestamptz,
  add column armed_by text,
  add column boot jsonb;

-- Here, so that no way to these states forgets it, of replicas of the earlier version neither.
create or replace function forget_report_token() returns trigger language plpgsql as $$
begin
  new.report_token_hash := null;
  new.boot := null;
  new.armed_at := now();
  new.armed_by := case new.state when 'pending' then 'approval' else 'deprovision' end;
  return new;
end $$;

-- The next boot is the next attempt, and nobody is needed for it.
create function arm_after_failure() returns trigger language plpgsql as $$
begin
  new.armed_at := now();
  new.armed_by := 'failure';
  return new;
end $$;
create trigger installs_failed_once_more before update on installs for each row
  when (new.state = 'installing'
        and coalesce((new.facts ->> 'installAttempts')::int, 0) > coalesce((old.facts ->> 'installAttempts')::int, 0))
  execute function arm_after_failure();

create index installs_by_contest on installs ((boot ->> 'contestedAt')) where boot ->> 'contestedAt' is not null;

-- What waited for a boot under the earlier version goes on waiting for one that counts.
update installs set armed_at = now(), armed_by = 'upgrade'
 where state = 'pending' or (state = 'installing' and facts ->> 'attemptFailed' = 'true');
update installs set armed_at = state_since, armed_by = 'upgrade' where state = 'deprovisioning';
