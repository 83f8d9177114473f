import { startRuns } from "../../../src/services/run/many/start-runs.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import { eventually } from "../eventually.ts";
import { openRunReplica } from "./run-replica.ts";

/** The nth time that a replica comes by a fail point. */
export interface Death {
  readonly failPoint: string;
  readonly nth: number;
}

export interface BatchVictimOrder {
  readonly url: string;
  readonly keyFile: string;
  readonly instance: string;
  readonly filter: string;
  readonly death: Death;
}

export const BATCH = { requestId: "batch", type: "REBOOT", planId: "", params: {}, maxParallel: 6, stopAfter: 0 };
const caller = { name: "tester", roles: ["admin"], address: null };

/** As a process of its own: asks for the batch and carries it out, up to where it dies. */
async function carryOut({ filter, death, ...replicaOptions }: BatchVictimOrder): Promise<void> {
  const replica = openRunReplica(replicaOptions);
  const { id } = await startRuns(replica.deps, caller, { ...BATCH, filter });
  let left = death.nth;
  watchFailPoints((failPoint, subjects) => {
    if (failPoint !== death.failPoint || (failPoint.endsWith(":claimed") && subjects.length === 0)) return;
    left -= 1;
    if (left === 0) die();
  });
  await replica.work();
  const isOver = "select 1 from runs where id = $1 and state not in ('PENDING', 'RUNNING')";
  await eventually(async () => (await replica.deps.db.query(isOver, [id])).length > 0, {
    what: `${id} has ended`,
    within: 60_000,
  });
  await replica.stop();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as BatchVictimOrder);
}
