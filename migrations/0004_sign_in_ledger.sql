-- Credentials that a BMC has rejected, so that all replicas together stop before the BMC locks the account. Only the rejected ones
-- are here, as an HMAC whose key is kept encrypted in `secrets`: a copy of this table tells nobody what was tried.
create table sign_in_ledger (
  endpoint       text not null,
  digest         bytea not null check (length(digest) = 32),
  -- in a row; the row goes when they are accepted
  rejections     integer not null check (rejections > 0),
  rejected_since timestamptz not null default now(),
  -- until then nobody tries them
  rejected_until timestamptz not null,
  primary key (endpoint, digest)
);
