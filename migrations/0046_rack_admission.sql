-- Whether a rack may begin its maintenance by itself is decided by those that failed, and those that wait are woken in their turn: few of many.
create index racks_failed_by_themselves on racks (id) where facts ->> 'failedByItself' = 'true';
create index racks_to_admit on racks ((outcome ->> 'since'), id)
  where outcome -> 'cause' ->> 'code' in ('maintenance_limit', 'maintenance_stopped');
