-- Bearer tokens, `mw_<id>_<secret>`. Only the SHA-256 of the whole token is kept: the secret is 256 random bits, which need no
-- slow hash, and a copy of this table lets nobody in.
create table tokens (
  id           text primary key check (id ~ '^[0-9a-f]{16}$'),
  -- Who calls with it: the initiator of what is done. Several tokens may bear one name.
  name         text not null check (length(name) between 1 and 256),
  roles        text[] not null,
  hash         bytea not null check (length(hash) = 32),
  created_at   timestamptz not null default now(),
  created_by   text not null,
  expires_at   timestamptz,
  revoked_at   timestamptz,
  -- To about a minute.
  last_used_at timestamptz
);
create index tokens_by_name on tokens (name, id);
