import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { cancelJob } from "../../../src/services/run/workflow-actions.ts";
import { startWorkflow } from "../../../src/services/run/workflow-starts.ts";
import type { SecretStore } from "../../../src/store/access/secrets.ts";
import { type Database, openDatabase } from "../../../src/store/postgres/database.ts";
import { eventually } from "../eventually.ts";
import { type RigKinds, rigStores, startRigEngine } from "../rigs/rig-engine.ts";
import { type AssemblyParams, assemblySteps, assemblyWorkflows } from "../workflows/assembly.ts";
import { NO_PASS_LASTS, type Place, PlacesPassed } from "./places.ts";

export const ASSEMBLY: RigKinds = { steps: assemblySteps, workflows: assemblyWorkflows };

export interface AssemblyVictimOrder {
  readonly url: string;
  readonly instance: string;
  readonly rigId: string;
  readonly params: AssemblyParams;
  /** Cancels this failed job; absent: starts one and carries it out. */
  readonly cancels?: string;
  /** Absent: it lives until the run has ended, and prints the places that it came through. */
  readonly place?: Place;
}

const tester = { name: "tester", roles: ["admin"], address: null };
const depsOf = (db: Database): RunDeps => ({
  db,
  stores: rigStores,
  secrets: {} as SecretStore,
  maxFindByIds: 100,
  runbooks: undefined as never,
  capabilitiesOf: () => new Set<never>(),
  clusterProbes: null,
  takesSeeds: () => true,
  seedsAt: null,
  ...ASSEMBLY,
});

/** Starts the job, or asks for its cancel; asked again, it is the same run. Returns its id. */
export async function askForAssembly(
  db: Database,
  { rigId, params, cancels }: Pick<AssemblyVictimOrder, "rigId" | "params" | "cancels">,
): Promise<string> {
  if (cancels !== undefined)
    return (await cancelJob(depsOf(db), tester, { runId: cancels, requestId: `cancel-${cancels}` })).id;
  const target = { kind: "rig", id: rigId };
  return (await startWorkflow(depsOf(db), tester, { workflow: "assembly", target, requestId: "once", params })).id;
}

export const assemblyEnded = (db: Database, id: string): Promise<unknown> =>
  eventually(
    async () => {
      const over = "select 1 from runs where id = $1 and state not in ('PENDING', 'RUNNING')";
      return (await db.query(over, [id])).length > 0;
    },
    {
      what: `${id} has ended`,
      within: 60_000,
      seen: async () =>
        JSON.stringify(
          await db.query(
            "select to_jsonb(w) as work, to_jsonb(r) as run from runs r left join work w using (id) where r.id = $1",
            [id],
          ),
        ),
    },
  );

function positionOf(thing: Thing): string {
  const { state, facts, action } = thing as RunThing;
  const undone = facts.doneBefore.length + facts.steps.filter(({ takenBack }) => !takenBack).length;
  if (action === "cancel") return `${state.name} with ${undone} to undo`;
  const visit = facts.steps.at(-1);
  if (visit === undefined) return state.name;
  const how = visit.actedAt !== null ? "acted" : visit.actingAt !== null ? "announced" : visit.state;
  return `${visit.name} ${visit.round} ${visit.state === "RUNNING" ? how : visit.state}`;
}

/** As a process of its own: carries out a workflow, or cancels a failed job of one, up to the place where it dies. */
async function carryOut(order: AssemblyVictimOrder): Promise<void> {
  const { url, instance, place } = order;
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  const places = new PlacesPassed(place);
  const id = await askForAssembly(db, order);
  places.position = "between";
  const around = places.around(positionOf);
  const engine = await startRigEngine(db, { instance, around, kinds: ASSEMBLY, clock: NO_PASS_LASTS, inFlight: 1 });
  await assemblyEnded(db, id);
  await engine.stop(); // what ended it is seen before its pass is through
  places.print();
  await db.close();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as AssemblyVictimOrder);
}
