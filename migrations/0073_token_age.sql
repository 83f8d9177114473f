-- Tokens have a greatest age, and those that work have names of their own.
alter table tokens
  -- What the age is counted from. Tokens that were there before ages counted are as old as this migration.
  add column aged_from timestamptz not null default now(),
  -- Has no greatest age, and shares its name: the token that "millwright dev" keeps in its data directory.
  add column ageless boolean not null default false,
  -- It has ended, and another token bears its name.
  add column name_given_up boolean not null default false;

update tokens set ageless = true where bound_to is null and name = 'dev' and created_by = 'dev';
update tokens set name_given_up = true where expires_at <= now();
-- Of several with one name the oldest keeps it. The others get their id behind it, which no two tokens share.
update tokens t set name = left(t.name, 239) || '-' || t.id
 where revoked_at is null and bound_to is null and not ageless and not name_given_up
   and exists (select from tokens o
                where o.name = t.name and o.revoked_at is null and o.bound_to is null and not o.ageless and not o.name_given_up
                  and (o.created_at, o.id) < (t.created_at, t.id));

create unique index tokens_living_names on tokens (name)
  where revoked_at is null and bound_to is null and not ageless and not name_given_up;
