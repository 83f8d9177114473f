-- Restores that operators have named (database.restored): a server that starts again with the same name has said nothing new.
create table restore_declarations (
  name        text        primary key,
  declared_at timestamptz not null default now(),
  -- The replica that was started with it.
  declared_by text        not null
);
