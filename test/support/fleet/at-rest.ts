import type { FleetNodeState } from "../../../src/lifecycles/fleet-node/lifecycle.ts";
import type { JobState } from "../../../src/runs/model/run.ts";
import type { FleetWorkflow } from "../../../src/runs/workflows/fleet/words.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";

/**
 * Which states of a node go with which states of its job, in the commit that ends the job (docs/specs/maas-node.md, "States and jobs").
 * `added` are ours, beside the two tables of the specification.
 */
interface Pairs {
  readonly specified: Readonly<Partial<Record<JobState, readonly FleetNodeState[]>>>;
  readonly added: Readonly<Partial<Record<JobState, readonly FleetNodeState[]>>>;
}

export const PAIRS: Readonly<Record<FleetWorkflow, Pairs>> = {
  fleet_onboarding: {
    specified: {
      pending: ["enrolling"],
      running: ["enrolling"],
      failed_retryable: ["enrolling"],
      failed_manual_intervention: ["enrolling", "quarantined"],
      completed: ["active"],
      reconciled: ["active"],
    },
    added: {
      // A manual node begins to enrol in the commit that begins its job; and a node that was quarantined is onboarded again.
      pending: ["bootstrap_issued", "quarantined"],
      running: ["quarantined"],
      compensating: ["enrolling", "quarantined"],
      failed_retryable: ["quarantined"],
      cancelled: ["quarantined"],
    },
  },
  fleet_decommission: {
    specified: {
      running: ["active", "offline", "quarantined", "draining", "retired", "removing"],
      failed_retryable: ["retired"],
      failed_manual_intervention: ["retired", "quarantined"],
      completed: ["deleted"],
    },
    added: {
      pending: ["active", "offline", "quarantined", "draining", "retired"],
      compensating: ["active", "offline", "quarantined", "draining", "retired", "removing"],
      failed_retryable: ["draining", "offline", "quarantined"],
      failed_manual_intervention: ["draining", "offline"],
      completed: ["offline", "active", "quarantined", "retired"],
      reconciled: ["offline", "quarantined", "retired", "deleted"],
      // Before its first stage a decommission has changed nothing.
      cancelled: ["active", "offline", "quarantined", "retired"],
    },
  },
};

export const mayGoTogether = (workflow: FleetWorkflow, job: JobState, node: FleetNodeState): boolean =>
  [PAIRS[workflow].specified, PAIRS[workflow].added].some((pairs) => pairs[job]?.includes(node));

/** One machine in all of its vocabularies. Null: there is none of that kind. */
export interface Tuple {
  readonly machine: string | null;
  readonly install: string | null;
  /** Those that are not deleted. */
  readonly nodes: readonly { readonly state: string; readonly jobs: readonly string[] }[];
}

const PHASES_WITH_NODE = new Set(["FACTORY_READY", "READY", "PROVISIONING", "MAINTENANCE"]);
const INSTALLS_WITH_NODE = new Set(["discovered", "retired"]);

/** What is wrong with a tuple, after whichever commit; undefined: nothing. */
export function tupleFault({ machine, install, nodes }: Tuple): string | undefined {
  if (nodes.length === 0) return undefined;
  if (nodes.length > 1) return `${nodes.length} live nodes`;
  const [{ state, jobs }] = nodes as [Tuple["nodes"][number]];
  if (jobs.length > 1) return `a node with ${jobs.length} jobs at work`;
  if (machine === null || !PHASES_WITH_NODE.has(machine)) return `the node is ${state} on a machine that is ${machine}`;
  if (state === "active" && machine === "FACTORY_READY") return "the node is active on a machine that is FACTORY_READY";
  if (install !== null && !INSTALLS_WITH_NODE.has(install))
    return `the node is ${state} beside an install that is ${install}`;
  return undefined;
}

interface Entry {
  readonly xid: string;
  readonly kind: string;
  readonly id: string;
  readonly to_state: string | null;
  readonly type: string;
}
interface FleetRun {
  readonly id: string;
  readonly node: string;
  readonly workflow: FleetWorkflow;
  /** Empty: a later attempt speaks for the job. */
  readonly job_state: JobState | "";
  readonly is_adopted: boolean;
  readonly is_marked: boolean;
}

const ENDED: ReadonlySet<string> = new Set(["SUCCEEDED", "FAILED", "CANCELED"]);

/** Replays the journal, commit by commit, and tells what was not as the tables say. */
export async function faultsAtRest(db: Queryable): Promise<readonly string[]> {
  const entries = await db.query<Entry>(
    `select xid::text, kind, id, to_state, type from journal
      where kind in ('machine', 'install', 'fleet_node', 'run') and (to_state is not null or type = 'deleted')
      order by journal.epoch, journal.xid, journal.seq`,
  );
  const nodes = await db.query<{ id: string; machine_id: string }>("select id, machine_id from fleet_nodes");
  const runs = await db.query<FleetRun>(
    `select id, target_id as node, plan ->> 'workflow' as workflow, job_state, action = 'adopt' as is_adopted, manual_at is not null as is_marked
       from runs where target_kind = 'fleet_node' and parent_run_id is null`,
  );
  const machineOf = new Map(nodes.map(({ id, machine_id }) => [id, machine_id]));
  const runOf = new Map(runs.map((run) => [run.id, run]));
  const replay = new Replay(machineOf, runOf);
  return [...Map.groupBy(entries, ({ xid }) => xid).values()].flatMap((commit) => replay.commit(commit));
}

class Replay {
  readonly #states = new Map<string, string>();
  readonly #machineOf: ReadonlyMap<string, string>;
  readonly #runs: ReadonlyMap<string, FleetRun>;

  constructor(machineOf: ReadonlyMap<string, string>, runs: ReadonlyMap<string, FleetRun>) {
    this.#machineOf = machineOf;
    this.#runs = runs;
  }

  commit(entries: readonly Entry[]): string[] {
    for (const { kind, id, to_state } of entries) {
      if (to_state === null) this.#states.delete(`${kind} ${id}`);
      else this.#states.set(`${kind} ${id}`, to_state);
    }
    const machines = new Set(entries.flatMap((entry) => this.#machineIn(entry)));
    const tuples = [...machines].flatMap((id) => {
      const fault = tupleFault(this.#tuple(id));
      return fault === undefined ? [] : [`machine ${id}: ${fault}`];
    });
    return [...tuples, ...entries.flatMap((entry) => this.#ended(entry))];
  }

  #machineIn({ kind, id }: Entry): string[] {
    if (kind === "machine" || kind === "install") return [id];
    const node = kind === "run" ? this.#runs.get(id)?.node : id;
    const machine = node === undefined ? undefined : this.#machineOf.get(node);
    return machine === undefined ? [] : [machine];
  }

  #tuple(id: string): Tuple {
    const stateOf = (kind: string, of: string) => this.#states.get(`${kind} ${of}`) ?? null;
    const live = [...this.#machineOf].filter(([node, machine]) => {
      const state = stateOf("fleet_node", node);
      return machine === id && state !== null && state !== "deleted";
    });
    const isAtWork = (run: string) => ["PENDING", "RUNNING"].includes(stateOf("run", run) ?? "");
    const nodes = live.map(([node]) => ({
      state: stateOf("fleet_node", node) ?? "",
      jobs: [...this.#runs.values()].filter((run) => run.node === node && isAtWork(run.id)).map((run) => run.id),
    }));
    return { machine: stateOf("machine", id), install: stateOf("install", id), nodes };
  }

  /** Of a job that this row ends. */
  #ended({ kind, id, to_state }: Entry): string[] {
    const run = kind === "run" ? this.#runs.get(id) : undefined;
    if (run === undefined || to_state === null || !ENDED.has(to_state)) return [];
    const node = this.#states.get(`fleet_node ${run.node}`) as FleetNodeState;
    const jobs = jobStatesAt(run, to_state);
    return jobs.some((job) => mayGoTogether(run.workflow, job, node))
      ? []
      : [`node ${run.node}: ${run.workflow} ended ${jobs.join(" or ")} with the node ${node}`];
  }
}

/** What the run's job was when it ended; people may have marked it since. */
function jobStatesAt({ job_state, is_adopted, is_marked }: FleetRun, phase: string): readonly JobState[] {
  if (phase === "SUCCEEDED") return [is_adopted ? "reconciled" : "completed"];
  if (phase === "CANCELED") return ["cancelled"];
  if (is_marked || job_state === "") return ["failed_retryable", "failed_manual_intervention"];
  return [job_state];
}
