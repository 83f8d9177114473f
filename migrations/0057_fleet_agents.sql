-- Work for the agent of a fleet node, one task a row. Finished ones are kept: they say what was done on the node.
create table fleet_tasks (
  id            text primary key,
  node_id       text not null,
  task_type     text not null,
  params        jsonb not null default '{}',
  -- a task that no agent has taken by then is given up
  expires_at    timestamptz not null,
  created_at    timestamptz not null default now(),
  state         text not null,
  state_data    jsonb not null default '{}',
  state_version bigint not null default 1,
  state_since   timestamptz not null default now(),
  outcome       jsonb,
  version       bigint not null default 1,
  basis         bigint not null default 1,
  facts         jsonb not null default '{}'
);
create index fleet_tasks_by_state on fleet_tasks (state, id);
create index fleet_tasks_by_node on fleet_tasks (node_id, created_at);
-- what agents that wait are given
create index fleet_tasks_live on fleet_tasks (node_id, created_at) where state in ('queued', 'dispatched');

-- Who answers for a node: the bearer token that its last enrolment was given. Another enrolment takes the place of the row.
create table fleet_agents (
  node_id     text primary key,
  token_id    text not null,
  -- which enrolment token of the node it was, counted from 1
  issue       integer not null,
  -- of the enrolment token and what the agent chose: the same request again gets the same answer until the bearer was used
  request_sha bytea not null,
  enrolled_at timestamptz not null default now(),
  used_at     timestamptz
);

-- Beside the node's row, since it changes all the time.
create table fleet_heartbeats (
  node_id       text primary key,
  seen_at       timestamptz not null,
  -- what the agent said last of the node; null: nothing yet
  health        text check (health in ('healthy', 'unhealthy')),
  health_at     timestamptz,
  message       text not null default '',
  agent_version text not null default ''
);
create index fleet_heartbeats_by_time on fleet_heartbeats (seen_at);

-- The one thing that the bearer speaks for; null: it is a caller's own.
alter table tokens add column bound_to text;
