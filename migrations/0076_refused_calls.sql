-- Who was not let in: failed sign-ins and refused calls, counted by minute. A row a caller, address and method; what is too much for a minute
-- is counted in rows that name nobody.
create table refused_calls (
  id      text primary key default gen_random_uuid()::text,
  minute  timestamptz not null,
  address text not null,
  name    text not null,
  method  text not null,
  outcome text not null,
  calls   bigint not null,
  last_at timestamptz not null,
  unique (minute, address, name, method, outcome)
);
create index refused_calls_by_last on refused_calls (last_at desc, id desc);
