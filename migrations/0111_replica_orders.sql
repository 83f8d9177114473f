-- What operators want of one replica. It reads them with the row that it writes every two seconds; they end with it.
alter table replicas add column draining boolean not null default false;
alter table replicas add column log_level text;
alter table replicas add column log_level_until timestamptz;
