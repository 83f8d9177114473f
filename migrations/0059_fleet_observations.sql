-- The machines of a site's MAAS are listed again and again, by whichever replica holds the site.
create table fleet_site_watches (
  site        text primary key references fleet_sites (name) on delete cascade,
  due_at      timestamptz not null default now(),
  lease_owner text,
  -- grows with every lease: who lost the site writes nothing of it any more
  epoch       bigint not null default 0,
  -- when the last listing that was answered was asked for; null: there was none
  listed_at   timestamptz,
  machines    integer not null default 0,
  -- why the last one was not answered; null: it was
  failure     text
);
create index fleet_site_watches_by_time on fleet_site_watches (due_at);

-- What MAAS showed last of a node's machine. Beside the node's row, and written only when it is something new: what a listing
-- showed again holds since its site was listed last.
create table fleet_observations (
  node_id     text primary key,
  site        text not null,
  system_id   text not null,
  -- in the words of docs/specs/maas-node.md; absent: MAAS has no such machine
  observed    text not null,
  -- MAAS's own number and words; null: it has no such machine
  status      integer,
  status_name text not null default '',
  power       text not null default 'unknown',
  -- the first that MAAS told of it
  serial      text,
  -- what follows from it while no job runs
  verdict     text not null check (verdict in ('fine', 'adopt', 'quarantine', 'report')),
  drift       text,
  -- since when it has been so
  since       timestamptz not null default now(),
  check ((drift is not null) = (verdict in ('quarantine', 'report')))
);
create index fleet_observations_by_site on fleet_observations (site);
create index fleet_observations_drifting on fleet_observations (drift) where drift is not null;

-- For reporting (docs/guides/fleet.md, "Reports in SQL"). One row a node, in coarse words only, with what MAAS showed last.
create view nodes as
select n.id, n.hostname, n.site, n.profile, n.sku, n.mode, n.ipmi_ip, n.machine_id, n.state as status, n.state_since as status_since,
       case when n.state = 'quarantined' then n.facts ->> 'quarantineReason' end as quarantine_reason,
       n.facts ->> 'systemId' as maas_system_id, o.observed as maas_state, greatest(o.since, w.listed_at) as maas_seen_at,
       n.created_at
  from fleet_nodes n
  left join fleet_observations o on o.node_id = n.id and o.system_id = n.facts ->> 'systemId'
  left join fleet_site_watches w on w.site = o.site;

-- One row a job, as its latest attempt has it.
create function fleet_jobs(workflow text) returns table (
  id text, node_id text, status text, stage text, mode text, attempt integer, failure_class text, message text, run_id text,
  requested_by text, created_at timestamptz, ended_at timestamptz
) language sql stable as $$
  select r.job_id, r.target_id,
         case when r.state = 'RUNNING' and r.facts ->> 'compensateFirst' is not null then 'compensating' else r.job_state end,
         coalesce(r.facts -> 'error' -> 'details' ->> 'step', v.visit ->> 'name'), r.params ->> 'mode', r.attempt,
         case when r.state = 'FAILED' then coalesce(r.facts -> 'error' -> 'details' ->> 'cause', 'unknown') end,
         coalesce(r.facts -> 'error' ->> 'message', r.outcome ->> 'reason'), r.id, first.initiator, first.created_at,
         case when r.state in ('SUCCEEDED', 'FAILED', 'CANCELED') then r.state_since end
    from runs r
    join runs first on first.job_id = r.job_id and first.attempt = 1
    left join lateral (
      select visit from jsonb_array_elements(r.facts -> 'steps') with ordinality as steps (visit, place)
       where visit ->> 'state' <> 'WAITING' order by place desc limit 1) v on true
   where r.target_kind = 'fleet_node' and r.parent_run_id is null and r.next_run_id is null and r.plan ->> 'workflow' = $1
$$;
create view node_onboardings as
select id, node_id, status, stage, attempt, failure_class, message, run_id, requested_by, created_at, ended_at
  from fleet_jobs('fleet_onboarding');
create view node_decommissions as select * from fleet_jobs('fleet_decommission');
