-- Events of devices, by streams that replicas hold. An event is only a reason to read the device: nothing of it is kept.

-- Replicas that hold streams. One that is not heard of any more holds none.
create table event_holders (
  owner       text primary key,
  alive_until timestamptz not null
);

-- One row a device whose BMC may report events. Read and written by the replicas that follow events alone.
create table event_streams (
  kind     text not null,
  id       text not null,
  -- A digest of where its BMC is and how we sign in: a stream to another place ends.
  place    text not null,
  -- The replica that holds the stream, or opens it.
  owner    text,
  -- Goes up with every claim: a replica that held the stream under an earlier one writes nothing any more.
  epoch    bigint not null default 0,
  -- When it was heard of first, while it is; the device is read less often then.
  live_since timestamptz,
  -- When a replica may open it, while none has it.
  due_at   timestamptz not null default now(),
  -- Streams in a row that ended before they were of use.
  failures int not null default 0,
  -- Why there is none: a cause.
  reason   text,
  primary key (kind, id)
) with (fillfactor = 70);
create index event_streams_due on event_streams (due_at);

alter table condition_looks add column claimed_at  timestamptz;
-- Something happened to the machine: it is to be looked at again, its BMC too.
alter table condition_looks add column nudged_at   timestamptz;
-- When the look began that last read the BMC.
alter table condition_looks add column bmc_read_at timestamptz;
