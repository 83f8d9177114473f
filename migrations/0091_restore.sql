-- A restored backup knows nothing of what was done since it was taken. It is recognised, and nothing goes on until a person has said so.

-- Which database this is, as it was when a server used it last. A dump that is restored brings the row along, and differs from it.
create table database_identity (
  only_row          boolean primary key default true check (only_row),
  database_id       uuid not null default gen_random_uuid(),
  -- Grows with each restore that was noticed: who has seen a later one has seen what this database has lost.
  generation        integer not null default 1,
  -- Null where the server does not tell.
  system_identifier text,
  database_oid      bigint not null,
  journal_oid       bigint not null,
  -- Witnesses that were silent since before this time are forgotten: a missing one proves nothing then.
  witnesses_since   timestamptz not null default '-infinity'
);

-- What each replica has written last. It remembers that itself, too: a row that is behind the memory is that of a restored database.
create table database_witnesses (
  id      text primary key,
  beat    bigint not null,
  seen_at timestamptz not null default now()
);
create index database_witnesses_by_age on database_witnesses (seen_at);

create table restore_reviews (
  id            text primary key,
  created_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}'
);
create unique index restore_reviews_live on restore_reviews ((true)) where state <> 'ended';

-- What waits for a person to say what becomes of it.
create table parked_work (
  review_id  text not null references restore_reviews (id),
  kind       text not null,
  id         text not null,
  -- What it was doing, for people.
  doing      text not null,
  parked_at  timestamptz not null default now(),
  -- resumed, adopted, abandoned, or gone: the thing does not exist any more. Null: it waits.
  verdict    text check (verdict in ('resumed', 'adopted', 'abandoned', 'gone')),
  settled_at timestamptz,
  settled_by text,
  primary key (review_id, kind, id),
  check ((verdict is null) = (settled_at is null))
);
create index parked_work_waiting on parked_work (kind, id) where verdict is null;

-- Nobody makes a pass of what is parked.
alter table work add column parked boolean not null default false;
create index work_parked on work (kind, id) where parked;

-- A run that ends without anything being done to its devices: nobody knows what became of them since the backup.
alter table runs add column abandoned_at timestamptz, add column abandoned_by text;

-- Which tokens were revoked lately, so that replicas can remember them: a backup lets them in again.
create index tokens_by_revocation on tokens (revoked_at) where revoked_at is not null;
