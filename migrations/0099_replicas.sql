-- The replicas at work. Each writes its row every two seconds: so others see it, and so it learns whether the database takes writes.
create table replicas (
  id         text primary key,
  host       text not null,
  version    text not null,
  commit     text not null,
  schema     text not null,
  started_at timestamptz not null default now(),
  seen_at    timestamptz not null default now(),
  stopping   boolean not null default false
);
