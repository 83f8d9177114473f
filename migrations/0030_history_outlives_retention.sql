-- By this retention finds the last change of state of a thing without reading everything that was written since.
create index journal_changes_of_state on journal (kind, id, epoch, xid, seq) where type in ('created', 'transition');

-- Retention keeps the last entry and the last change of state of every thing, and everything of a run that goes on. So the oldest
-- rows are no longer the ones to remove next: up to here retention has examined every entry.
alter table journal_epoch add column examined_to text not null default '0.0.0';

-- What retention has removed of a thing: how many entries, and when the newest of them was written.
create table journal_removals (
  kind    text not null,
  id      text not null,
  entries bigint not null,
  until   timestamptz not null,
  primary key (kind, id)
);

-- Earlier versions removed entries without a record. A thing counts its versions from 1, and each entry has one.
insert into journal_removals (kind, id, entries, until)
select t.kind, t.id, t.kept_from - 1, least(t.kept_at, now())
  from (select t.kind, t.id, coalesce(o.version, t.version + 1) as kept_from, o.at as kept_at
          from (select 'power_shelf' as kind, id, version from power_shelves
                union all select 'expected_power_shelf', id, version from expected_power_shelves
                union all select 'machine', id, version from machines
                union all select 'install', id, version from installs
                union all select 'run', id, version from runs) as t
               left join lateral (select j.version, j.at from journal j where j.kind = t.kind and j.id = t.id
                                   order by j.epoch, j.xid, j.seq limit 1) as o on true) as t
 where t.kept_from > 1 and exists (select 1 from journal_epoch where forgotten_to <> '0.0.0');
