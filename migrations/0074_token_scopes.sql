-- Tokens that are limited in what they may call, and on which things.
alter table tokens
  -- Null: the token is limited by its roles alone.
  add column scope jsonb,
  -- The roles of a token with a scope. They are not in "roles": a replica that knows nothing of scopes gives such a token no role at all.
  add column scoped_roles text[],
  add constraint tokens_scoped_roles check ((scope is null) = (scoped_roles is null) and (scope is null or roles = '{}'));
