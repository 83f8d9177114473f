import type { Condition, Machine } from "../../contract/baremetal/v1/baremetal_pb.js";
import { ConditionReconciler, type ReconcilerOptions } from "../../src/engine/conditions/condition-reconciler.ts";
import type { CheckPlaces } from "../../src/engine/conditions/machine-check.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { seconds } from "../../src/kernel/time/duration.ts";
import { createBmcGateway } from "../../src/providers/transport/bmc-gateway.ts";
import { wireCheckPlaces } from "../../src/wiring/check-places.ts";
import { wireMachineHardware } from "../../src/wiring/machine-hardware.ts";
import { loadRunbooks } from "../../src/wiring/runbook-files.ts";
import { wireStepTargets } from "../../src/wiring/step-targets.ts";
import { eventually } from "./eventually.ts";
import type { RunBench } from "./run-bench.ts";

/** How soon what changes at a machine must show. */
export const SHOWS_WITHIN_MS = 30_000;

export interface Reconciling {
  /** As a graceful stop: resolves when it has handed everything back. */
  stop(): Promise<void>;
}

export interface ConditionBench {
  start(options?: Partial<ReconcilerOptions>): Reconciling;
  condition(id: string, type: string): Promise<Condition | undefined>;
  /** Waits until the condition is as told, for as long as a change may take to show. */
  becomes(id: string, type: string, status: boolean, reason?: string): Promise<Condition>;
  /** Waits until the machine has been looked at so many more times. */
  looked(id: string, times: number): Promise<void>;
  close(): Promise<void>;
}

/** Reconcilers with the interval and the rate that are the default, on the machines of a bench. */
export function openConditionBench({ deps, machines }: Pick<RunBench, "deps" | "machines">): ConditionBench {
  const { db, stores, secrets } = deps;
  const gateway = createBmcGateway();
  const hardware = wireMachineHardware({ gateway, mayReach: () => true });
  const targetsOf = wireStepTargets({ db, secrets, runbooks: loadRunbooks() });
  const placesOf: (machines: Parameters<ReconcilerOptions["placesOf"]>[0]) => Promise<readonly CheckPlaces[]> =
    wireCheckPlaces({ db, hardware, targetsOf });
  const running: Reconciling[] = [];
  const find = (machine: Machine, type: string) => machine.status?.conditions.find((each) => each.type === type);
  const epochOf = async (id: string): Promise<number> => {
    const [row] = await db.query<{ epoch: number; lease_owner: string | null }>(
      "select epoch, lease_owner from condition_looks where machine_id = $1",
      [id],
    );
    return row ? row.epoch - (row.lease_owner === null ? 0 : 1) : 0;
  };
  return {
    start(options = {}) {
      const stop = new AbortController();
      const reconciler = new ConditionReconciler({
        db,
        stores,
        placesOf,
        log: silentLog,
        interval: seconds(10),
        rate: 100,
        ...options,
      });
      const run = reconciler.run(stop.signal);
      const handle = {
        async stop() {
          stop.abort();
          await run;
        },
      };
      running.push(handle);
      return handle;
    },
    async condition(id, type) {
      return find(await machines.getMachine({ machineId: id }), type);
    },
    async becomes(id, type, status, reason) {
      let seen: Machine | undefined;
      return eventually(
        async () => {
          seen = await machines.getMachine({ machineId: id });
          const found = find(seen, type);
          return found?.status === status && (reason === undefined || found.reason === reason) && found;
        },
        {
          what: `${type} of ${id} is ${status} ${reason ?? ""}`,
          within: SHOWS_WITHIN_MS,
          seen: () =>
            JSON.stringify(seen?.status?.conditions, (_, value) => (typeof value === "bigint" ? Number(value) : value)),
        },
      );
    },
    async looked(id, times) {
      const wanted = (await epochOf(id)) + times;
      await eventually(async () => (await epochOf(id)) >= wanted, {
        what: `${id} has been looked at ${times} more times`,
        within: SHOWS_WITHIN_MS * times,
      });
    },
    async close() {
      await Promise.all(running.map(({ stop }) => stop()));
      await hardware.close();
      gateway.close();
    },
  };
}
