-- Sessions of people who have signed in to the console with a credential. A browser holds `<id>.<secret>` in a cookie; only the SHA-256 of
-- the whole is kept, so that a copy of this table lets nobody in.
create table console_sessions (
  id              text primary key check (id ~ '^[0-9a-f]{16}$'),
  hash            bytea not null check (length(hash) = 32),
  -- Who signed in, and what the credential allowed: the session allows that, and no more.
  name            text not null check (length(name) between 1 and 256),
  roles           text[] not null,
  scope           jsonb,
  -- What was shown: a token of the database or of the configuration, a JSON Web Token, a client certificate. The session of a token ends with it.
  credential_kind text not null check (credential_kind in ('token', 'configured', 'jwt', 'certificate')),
  -- The id of the token, or the SHA-256 of a configured one.
  credential_ref  text,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz not null,
  -- When somebody signed out, or an administrator ended it.
  ended_at        timestamptz,
  -- From where, and with what, people signed in.
  address         text,
  user_agent      text not null default ''
);
create index console_sessions_by_end on console_sessions (least(expires_at, ended_at));
