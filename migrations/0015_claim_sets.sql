-- Claims are taken as sets, all or none. A set is the rows of one holder; it has one ticket, which is its place in every queue of its things.
--   holder_*    who takes the claim, waits for it and releases it
--   behalf_*    on whose behalf the holder works; null: its own. Everybody who works on a thing at the same time does so on behalf of the same one
--   granted_at  since when the thing is held; of everybody who works on it, one row has it
--   joined_at   since when the holder works on a thing that is already held on the same behalf
--   ticket      the set's place in line; null: seq, which is the place of a set of one
--   set_size    how many things the set has
--   bars_until  until when the set, while it waits, keeps later claims off its things; null: half an hour after it was requested
alter table claims
  add column behalf_kind text,
  add column behalf_id   text,
  add column joined_at   timestamptz,
  add column ticket      bigint,
  add column set_size    integer not null default 1,
  add column bars_until  timestamptz;
