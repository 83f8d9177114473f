-- How much of its run's log there is up to and with each line: whoever appends reads the last line, and not the whole log.
alter table run_logs add column bytes_so_far bigint;
update run_logs l set bytes_so_far = s.total
  from (select run_id, seq, sum(octet_length(data)) over (partition by run_id order by seq) as total from run_logs) as s
 where l.run_id = s.run_id and l.seq = s.seq;
alter table run_logs alter column bytes_so_far set not null;

-- A run is written with every look, and none of that but its ends is in an index: with room on its page, no index is touched.
alter table runs set (fillfactor = 50);
alter table machines set (fillfactor = 80);
