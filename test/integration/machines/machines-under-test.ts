import { type Client, createClient } from "@connectrpc/connect";
import { MachineService, PlanService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { CloudInitService } from "../../../contract/millwright/v1/cloud_init_pb.js";
import { ClusterService, ImageService } from "../../../contract/millwright/v1/cluster_pb.js";
import { MachineLifecycleService } from "../../../contract/millwright/v1/machine_pb.js";
import { PlanCatalogService } from "../../../contract/millwright/v1/plan_pb.js";
import type { ObservedCondition } from "../../../src/lifecycles/machine/conditions.ts";
import { runStartedData } from "../../../src/lifecycles/machine/lifecycle.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { applyVerb } from "../../../src/store/lifecycle/verbs.ts";
import { recordConditions } from "../../../src/store/machine/conditions.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { type ForgeUnderTest, startForge } from "../api/forge-under-test.ts";

/** The surface with the services of machines, on a database of its own, and nobody who carries runs out. */
export interface MachinesUnderTest extends ForgeUnderTest {
  readonly machines: Client<typeof MachineService>;
  readonly lifecycle: Client<typeof MachineLifecycleService>;
  readonly plans: Client<typeof PlanService>;
  readonly catalog: Client<typeof PlanCatalogService>;
  readonly clusters: Client<typeof ClusterService>;
  readonly images: Client<typeof ImageService>;
  readonly cloudInit: Client<typeof CloudInitService>;
  /** Puts a machine into a phase, as the table would have it there. */
  setPhase(id: string, phase: string): Promise<void>;
  observe(id: string, observed: readonly ObservedCondition[]): Promise<void>;
  /** A row of the table of runs, as StartRun would write it. */
  addRun(run: { id: string; machineId: string; state?: string; plan?: object; planId?: string }): Promise<void>;
  /** What a run does to its machine when it begins. */
  beginRun(id: string, runId: string): Promise<void>;
}

export async function startMachines(): Promise<MachinesUnderTest> {
  const surface = await startForge();
  const { db, deps } = surface;
  const transport = surface.api.grpc();
  return {
    ...surface,
    machines: createClient(MachineService, transport),
    lifecycle: createClient(MachineLifecycleService, transport),
    plans: createClient(PlanService, transport),
    catalog: createClient(PlanCatalogService, transport),
    clusters: createClient(ClusterService, transport),
    images: createClient(ImageService, transport),
    cloudInit: createClient(CloudInitService, transport),
    async setPhase(id, phase) {
      await db.execute("update machines set state = $2, state_data = '{}', basis = basis + 1 where id = $1", [
        id,
        phase,
      ]);
    },
    async observe(id, observed) {
      await db.transaction(async (tx) => {
        await lockThings(tx, [{ kind: "machine", id }]);
        const [machine] = await listMachines(tx, { ids: [id] });
        if (!machine) throw new Error(`there is no ${id}`);
        await recordConditions(tx, machine, { observed, actor: "reconciler", now: new Date() });
      });
    },
    async addRun({ id, machineId, state = "PENDING", plan = {}, planId = "plan/reboot" }) {
      await db.execute(
        `insert into runs (id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state)
         values ($1, $2, $1, '', 'REBOOT', $3, $4, $1, 'tester', $5)`,
        [id, machineId, planId, JSON.stringify(plan), state],
      );
    },
    async beginRun(id, runId) {
      await db.transaction((tx) =>
        applyVerb(tx, deps.stores, {
          kind: "machine",
          id,
          owner: "other",
          name: "run_started",
          actor: `run ${runId}`,
          data: runStartedData({ run: runId, job: `job-of-${runId}` }, null),
        }),
      );
    },
  };
}
