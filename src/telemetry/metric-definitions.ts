interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly doc: string;
  /** Upper bounds, for histograms. */
  readonly buckets?: readonly number[];
}

const DEVICE_SECONDS = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30];
/** From seconds (a shelf switches) to a day (a node waits for a person). */
const STATE_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400];

/**
 * Every metric of Millwright's own; the reference is printed from here. Kinds and states are the words of the lifecycle tables.
 * Labels are closed sets: no ids, no addresses, no text from outside.
 */
export const METRICS = {
  millwright_things: {
    type: "gauge",
    labels: ["kind", "state"],
    doc: "Things by lifecycle state. The same on every replica: take the maximum, not the sum.",
  },
  millwright_things_above_sla: {
    type: "gauge",
    labels: ["kind", "state"],
    doc: "Things that are longer in a working state than its SLA allows.",
  },
  millwright_things_failing: {
    type: "gauge",
    labels: ["kind", "state"],
    doc: "Things whose last pass failed or that wait for a person, as their reasons say. The same on every replica.",
  },
  millwright_things_in_trouble: {
    type: "gauge",
    labels: ["kind", "trouble", "rack", "cause"],
    doc: "Things that need attention, by why: `needs_person`, `failed` (a state that its lifecycle calls trouble), `failing` (the last pass failed); machines also `unreachable`, `bmc_unreachable`, `degraded`. A thing in several troubles counts in each. The same on every replica.",
  },
  millwright_machine_conditions: {
    type: "gauge",
    labels: ["condition"],
    doc: "Machines for which a condition holds that calls for somebody: `NeedsIntervention`, `Degraded`. Retired ones are left out. The same on every replica.",
  },
  millwright_requests_pending: {
    type: "gauge",
    labels: ["kind", "request"],
    doc: "Things of which something is requested that has not ended: a `maintenance` or a `reprovision` that waits or is carried out. The same on every replica.",
  },
  millwright_requests_oldest_pending_seconds: {
    type: "gauge",
    labels: ["kind", "request"],
    doc: "How long ago the oldest request was made that has not ended; 0 when there is none.",
  },
  millwright_things_waiting_for_claims: {
    type: "gauge",
    labels: ["kind"],
    doc: "Things that wait for a device that somebody else works on. The same on every replica.",
  },
  millwright_restore_review: {
    type: "gauge",
    labels: [],
    doc: "1 while a restored backup is under review: nothing that was under way goes on, and devices take no commands. The same on every replica.",
  },
  millwright_restore_parked: {
    type: "gauge",
    labels: ["kind"],
    doc: "Things that wait in a restore review for a decision. The same on every replica.",
  },
  millwright_racks_waiting_for_maintenance: {
    type: "gauge",
    labels: ["cause"],
    doc: "Racks whose maintenance may not begin by itself yet: maintenance_limit, or maintenance_stopped after failures. The same on every replica.",
  },
  millwright_racks_failed_by_themselves: {
    type: "gauge",
    labels: [],
    doc: "Racks on which maintenance failed that nobody asked for: at rack.stop_after_failures none begins by itself. The same on every replica.",
  },
  millwright_claims_oldest_wait_seconds: {
    type: "gauge",
    labels: ["kind"],
    doc: "How long the thing that has waited longest for a claim has been waiting; 0 when none waits.",
  },
  millwright_state_seconds: {
    type: "histogram",
    labels: ["kind", "state"],
    buckets: STATE_SECONDS,
    doc: "How long things stayed in a state, seen when they leave it.",
  },
  millwright_transitions_total: {
    type: "counter",
    labels: ["kind", "from", "to"],
    doc: "Transitions that this replica committed.",
  },
  millwright_handler_seconds: {
    type: "histogram",
    labels: ["kind", "state", "outcome"],
    buckets: DEVICE_SECONDS,
    doc: "Passes of a state's handler, by what came of them.",
  },
  millwright_failures_total: {
    type: "counter",
    labels: ["kind", "state", "cause"],
    doc: "Passes that failed, and things that failed for good, by the state in which it happened and by cause.",
  },
  millwright_step_failures_total: {
    type: "counter",
    labels: ["step_kind", "cause"],
    doc: "Attempts at steps of runs that failed, by the kind of the step and by cause.",
  },
  millwright_runs_ended_total: {
    type: "counter",
    labels: ["target", "type", "outcome", "cause"],
    doc: "Runs that ended on this replica: by the kind of their target and their type or workflow; SUCCEEDED, FAILED or CANCELED; with the cause of a failure.",
  },
  millwright_rack_maintenance_total: {
    type: "counter",
    labels: ["trigger", "outcome"],
    doc: "Maintenances of racks that ended on this replica: by ingestion, reprovision or on_demand; completed, failed, validation_failed, terminated or lost.",
  },
  millwright_conflicts_total: {
    type: "counter",
    labels: ["kind"],
    doc: "Outcomes dropped because the thing changed in the meantime; another pass follows.",
  },
  millwright_leases_lost_total: {
    type: "counter",
    labels: ["kind"],
    doc: "Leases that ended before the work under them did; another replica goes on with it.",
  },
  millwright_quarantines_total: {
    type: "counter",
    labels: ["kind"],
    doc: "Times that a thing was set apart, since its row cannot be read or what it led to cannot be written.",
  },
  millwright_tokens_ending_by_age: {
    type: "gauge",
    labels: [],
    doc: "Bearer tokens that reach auth.token_max_age within 14 days, and let nobody in from then on: `token list` shows which. The same on every replica.",
  },
  millwright_journal_unsealed_seconds: {
    type: "gauge",
    labels: [],
    doc: "How long the oldest entry of the journal waits for its seal; a second or two, and longer after an upgrade or while a writing transaction stays open. The same on every replica.",
  },
  millwright_journal_seals_lost_total: {
    type: "counter",
    labels: [],
    doc: "Times that a seal of the journal was gone, or another one, that this replica had seen: somebody has changed the journal's seals, or put an older database in place.",
  },
  millwright_secrets_of_earlier_keys: {
    type: "gauge",
    labels: [],
    doc: "Secrets that are not encrypted with the current secret key. It falls to 0 within a minute of `secrets rotate-key`; what stays cannot be read, and the log says which. The same on every replica.",
  },
  millwright_fleet_listing_seconds: {
    type: "histogram",
    labels: ["outcome"],
    buckets: DEVICE_SECONDS,
    doc: "Listings of the machines of fleet sites, by result: answered, failed, doubted (more than half of the nodes would have been quarantined), overtaken by another replica.",
  },
  millwright_fleet_observation_age_seconds: {
    type: "gauge",
    labels: [],
    doc: "How old the oldest listing is that nodes are compared with; 0 where no node is bound to a machine of MAAS. The same on every replica.",
  },
  millwright_fleet_sites_failing: {
    type: "gauge",
    labels: [],
    doc: "Fleet sites whose MAAS did not list its machines the last time. The same on every replica.",
  },
  millwright_fleet_drift: {
    type: "gauge",
    labels: ["reason"],
    doc: "Nodes whose machine in MAAS is not what it should be, while no job of theirs runs. Those that were quarantined for it are counted as things in that state. The same on every replica.",
  },
  millwright_fleet_jobs: {
    type: "gauge",
    labels: ["workflow", "state"],
    doc: "Nodes by the state of their latest job: fleet_onboarding or fleet_decommission. Removed nodes are left out. The same on every replica.",
  },
  millwright_fleet_agents: {
    type: "gauge",
    labels: ["state", "heard"],
    doc: "Agents of fleet nodes, by the state of their node and what was heard of them last: healthy, unhealthy, unknown (it calls, and has not said yet), silent (nothing for fleet.offline_after). Removed nodes are left out. The same on every replica.",
  },
  millwright_fleet_heartbeat_age_seconds: {
    type: "gauge",
    labels: ["state"],
    doc: "The longest that an agent of a fleet node has not called, by the state of the node. The same on every replica.",
  },
  millwright_boots_contested: {
    type: "gauge",
    labels: [],
    doc: "Machines of whose last boot two addresses asked for the script, in the last 24 h: one of the two is a stranger. The same on every replica.",
  },
  millwright_work_due: { type: "gauge", labels: ["kind"], doc: "Things that are due and that no replica works on." },
  millwright_work_leased: { type: "gauge", labels: ["kind"], doc: "Things that some replica works on." },
  millwright_work_oldest_due_seconds: {
    type: "gauge",
    labels: ["kind"],
    doc: "How long the longest-waiting due thing has been waiting.",
  },
  millwright_journal_horizon_age_seconds: {
    type: "gauge",
    labels: [],
    doc: "Age of the oldest open writing transaction: watchers see nothing newer.",
  },
  millwright_database_connections: {
    type: "gauge",
    labels: ["pool", "state"],
    doc: "Connections of this replica to the database: `all`, and those for `lists` alone; `in_use`, `idle`, and `most` that there may be; `waiting` are callers that wait for one.",
  },
  millwright_build_info: {
    type: "gauge",
    labels: ["version", "commit", "schema"],
    doc: "Always 1; the labels say which release this replica runs, from which commit, and the newest migration that it knows.",
  },
  millwright_certificate_ends_seconds: {
    type: "gauge",
    labels: [],
    doc: "When the certificate that the listeners show ends, in seconds since 1970. Absent without TLS.",
  },
  millwright_clock_ahead_seconds: {
    type: "gauge",
    labels: [],
    doc: "By how much this replica's host has a later time than the database; negative: an earlier one.",
  },
  millwright_calls_refused_total: {
    type: "counter",
    labels: ["outcome"],
    doc: "Calls that this replica refused: sign_in_failed, or refused to the caller's roles. Who and where: `millwright audit list`.",
  },
  millwright_condition_look_seconds: {
    type: "histogram",
    labels: ["outcome"],
    buckets: DEVICE_SECONDS,
    doc: "Checks of machines that keep their conditions true, by result.",
  },
  millwright_condition_lag_seconds: {
    type: "gauge",
    labels: [],
    doc: "How long the machine that has waited longest is overdue for a check. Grows when the fleet is too large for `conditions.rate`.",
  },
  millwright_event_streams: {
    type: "gauge",
    labels: [],
    doc: "Devices whose events this replica follows over an open stream. The sum over the replicas is that of the site.",
  },
  millwright_event_nudges_total: {
    type: "counter",
    labels: ["kind"],
    doc: "Times that a device was read before it was due, because something was heard of it, or its stream opened or ended.",
  },
  millwright_event_stream_ends_total: {
    type: "counter",
    labels: ["kind", "reason"],
    doc: "Streams of events that ended, or could not be opened: a cause, `silent`, or `changed` for a device that is gone, has moved or has other credentials.",
  },
  millwright_watchers: { type: "gauge", labels: [], doc: "Open event streams on this replica." },
  millwright_device_call_seconds: {
    type: "histogram",
    labels: ["operation", "outcome"],
    buckets: DEVICE_SECONDS,
    doc: "Requests to devices, by operation and how they ended.",
  },
  millwright_rpc_seconds: {
    type: "histogram",
    labels: ["method", "code"],
    buckets: REQUEST_SECONDS,
    doc: "Calls of the API, by method and gRPC code; streams are counted when they end.",
  },
  millwright_limit_current: {
    type: "gauge",
    labels: ["limit"],
    doc: "What this replica counts towards a limit of the API now; of limits for each address, caller or listener the highest.",
  },
  millwright_limit_most: {
    type: "gauge",
    labels: ["limit"],
    doc: "What the limit is set to (`limits.*` of the configuration).",
  },
  millwright_limit_reached_total: {
    type: "counter",
    labels: ["limit"],
    doc: "Connections, calls and readers that were refused or ended since a limit of the API was reached; `idle_session` is part of ordinary life.",
  },
  millwright_collect_failures_total: {
    type: "counter",
    labels: [],
    doc: "Times that gauges could not be read from the database for /metrics.",
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;
type OfType<T extends MetricDefinition["type"]> = {
  [N in MetricName]: (typeof METRICS)[N]["type"] extends T ? N : never;
}[MetricName];
export type CounterName = OfType<"counter">;
export type GaugeName = OfType<"gauge">;
export type HistogramName = OfType<"histogram">;

/** Exactly the labels that the table declares. */
export type LabelsOf<N extends MetricName> = Readonly<Record<(typeof METRICS)[N]["labels"][number], string>>;

export interface MetricRow {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly doc: string;
}

export const describeMetrics = (): MetricRow[] =>
  Object.entries(METRICS).map(([name, { type, labels, doc }]) => ({ name, type, labels, doc }));
