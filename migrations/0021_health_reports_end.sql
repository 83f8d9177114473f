-- Health reports may end by themselves: a monitor that stops reporting must not leave a machine degraded for ever.
alter table health_reports add column expires_at timestamptz;
create index health_reports_by_expiry on health_reports (expires_at) where expires_at is not null;
