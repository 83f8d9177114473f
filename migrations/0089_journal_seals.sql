-- What the journal was, so that a change of it behind the server's back shows. Each seal covers the entries after the seal before it and
-- that seal itself, under a key that is not in the database.
create table journal_seals (
  number    bigint primary key,
  -- The last entry that it covers.
  to_epoch  integer not null,
  to_xid    xid8 not null,
  to_seq    bigint not null,
  entries   integer not null,
  -- A hash of each entry, in their order. They stay when retention removes entries, so that those beside them can still be checked.
  leaves    bytea not null,
  sealed_at timestamptz not null,
  mac       bytea not null,
  -- Which of the entries retention has removed, a bit each, under a signature of its own; null: none.
  removed     bytea,
  removed_mac bytea,
  unique (to_epoch, to_xid, to_seq)
);
create index journal_seals_by_time on journal_seals (sealed_at);

-- Up to here retention has examined every entry. An earlier version would remove entries without signing for it: it takes the old column for
-- the end of the journal, and removes nothing.
alter table journal_epoch add column swept_to text not null default '0.0.0';
update journal_epoch set swept_to = examined_to, examined_to = '999999999.9999999999999999999.999999999999999999';
