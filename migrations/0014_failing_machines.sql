-- What src/lifecycles/machine/failing.ts says of a machine; a test compares them. Kept with the row, since conditions change often and
-- whether somebody is needed hardly ever: the index is written only when that does.
alter table machines add column failing text not null generated always as (
  case when state = 'RETIRED' then 'false'
       when conditions @> '[{"type": "Degraded", "status": true}]'
         or conditions @> '[{"type": "NeedsIntervention", "status": true}]' then 'true'
       when state <> 'RMA' and (conditions @> '[{"type": "Reachable", "status": false}]'
         or conditions @> '[{"type": "BMCReachable", "status": false}]') then 'true'
       else 'false' end) stored;
create index machines_failing on machines (id) where failing = 'true';
