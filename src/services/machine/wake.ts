import type { MachineId } from "../../kernel/ids.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listRuns } from "../../store/run/runs.ts";
import { machineKey } from "./machines.ts";

/** It can be reached in another way from now on: whoever works on it, and was not let in, tries at once. */
export async function wakeWithRuns(tx: Transaction, id: MachineId): Promise<void> {
  const ofMachine = await listRuns(tx, { target: machineKey(id), activeOnly: true });
  const ofItsFirmware = await listRuns(tx, { target: { kind: "host_reprovision", id }, activeOnly: true });
  const runs = [...ofMachine, ...ofItsFirmware].map((run) => ({ kind: "run", id: run.id }));
  await work.wake(tx, [machineKey(id), ...runs]);
}
