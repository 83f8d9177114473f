-- What src/lifecycles/machine/failing.ts says of a machine; a test compares them. A machine that has no endpoint, or that was powered off on
-- purpose, is not reached and is not failing for that. The column keeps its name and its words: the version before reads it as it is.
-- PostgreSQL before 17 cannot give a column another expression, so that it is made again.
drop index machines_failing;
alter table machines drop column failing;
alter table machines add column failing text not null generated always as (
  case when state = 'RETIRED' then 'false'
       when conditions @> '[{"type": "Degraded", "status": true}]'
         or conditions @> '[{"type": "NeedsIntervention", "status": true}]' then 'true'
       when state = 'RMA' then 'false'
       when conditions @> '[{"type": "Reachable", "status": false}]'
        and not conditions @> '[{"type": "Reachable", "reason": "NoEndpoint"}]'
        and not conditions @> '[{"type": "Reachable", "reason": "OffOnPurpose"}]' then 'true'
       when conditions @> '[{"type": "BMCReachable", "status": false}]'
        and not conditions @> '[{"type": "BMCReachable", "reason": "NoEndpoint"}]'
        and not conditions @> '[{"type": "BMCReachable", "reason": "OffOnPurpose"}]' then 'true'
       else 'false' end) stored;
create index machines_failing on machines (id) where failing = 'true';
