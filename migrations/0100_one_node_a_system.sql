-- A machine of MAAS is one live node's. The steps refuse to bind a second one; this refuses what two of them do at the same moment.
-- Nodes that share a machine already stay as they are, all but the oldest with this mark: no upgrade fails on them.
alter table fleet_nodes add column shares_system boolean not null default false;
update fleet_nodes n set shares_system = true
  from (select id, row_number() over (partition by site, facts ->> 'systemId' order by created_at, id) as place
          from fleet_nodes where state <> 'deleted' and facts ->> 'systemId' is not null) as held
 where held.id = n.id and held.place > 1;
-- Removed nodes keep the name of their machine: it may be another node's by now.
create unique index fleet_nodes_one_system on fleet_nodes (site, (facts ->> 'systemId')) where state <> 'deleted' and not shares_system;
