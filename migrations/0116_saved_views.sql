-- Lists that callers have kept for themselves: a filter, an order and groups, under a name.
create table saved_views (
  -- The name of the caller; empty where nobody signs in (`auth.mode = off`).
  owner    text not null check (length(owner) <= 256),
  kind     text not null,
  name     text not null check (length(name) between 1 and 80),
  filter   text not null,
  order_by text not null,
  group_by text[] not null,
  saved_at timestamptz not null default now(),
  primary key (owner, kind, name)
);
