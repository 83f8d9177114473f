-- Which key encrypts now is the database's to say, so that all replicas change it at the same moment. No row: the first line of the
-- key file, as in earlier versions; the first replica that starts names it.
alter table secret_keys
  add column is_current    boolean not null default false,
  -- When it began to encrypt; null: it never did.
  add column current_since timestamptz;
create unique index secret_keys_one_current on secret_keys (is_current) where is_current;

-- Which replica has which keys in its file, as it said last. One that is gone says nothing any more.
create table secret_key_holders (
  replica text        not null,
  key_id  text        not null,
  seen_at timestamptz not null default now(),
  primary key (replica, key_id)
);

-- Those that are still to be encrypted with the current key.
create index secrets_by_key on secrets (key_id, name);
