-- What runs left behind is among the facts of their machine; nobody ever wrote it here.
alter table machines drop column residue;

-- One run a request, as before; with the request first the same index also finds a run by its request alone, at no further cost for
-- those who start runs. Who asks with a machine as well gives both, so it serves them as it did.
alter table runs drop constraint runs_machine_id_request_id_key;
alter table runs add constraint runs_one_a_request unique (request_id, machine_id);
-- How an attempt came about: nearly all were started, and are soon found by walking back in time. The others are few, and no start
-- writes into this index.
create index runs_by_action on runs (action, created_at desc, id desc) where action <> 'start';

-- Looks at what has ended: from now on they are removed with the commit that ends it.
delete from work w using runs t where w.kind = 'run' and w.id = t.id and t.state in ('SUCCEEDED', 'FAILED', 'CANCELED');
