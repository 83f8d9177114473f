import { runLifecycle } from "../../../runs/model/lifecycle.ts";
import { activeRunsOn } from "../../../store/fleet/agents.ts";
import { fleetNodeStore } from "../../../store/fleet/nodes.ts";
import * as work from "../../../store/lifecycle/work.ts";
import type { Queryable } from "../../../store/postgres/database.ts";

/** The jobs of these nodes wait for what an agent does: they need not wait until their next pass. */
export async function wakeJobsOf(db: Queryable, nodeIds: readonly string[]): Promise<void> {
  const runs = await activeRunsOn(db, fleetNodeStore.lifecycle.kind, nodeIds);
  await work.wake(
    db,
    runs.map((id) => ({ kind: runLifecycle.kind, id })),
  );
}
