import type { PowerState } from "../../../capabilities/power-control.ts";
import { AppError, messageOf, StepFailure } from "../../../kernel/errors.ts";
import { parseMachineId } from "../../../kernel/ids.ts";
import type { Machine } from "../../../lifecycles/machine/machine.ts";
import type { Plan } from "../../../runs/model/plan/plan.ts";
import type { Run } from "../../../runs/model/run.ts";
import { bootDevicePlan, type PowerOperation, powerPlan } from "../../../runs/plans/machine-power.ts";
import { BOOT_DEVICES } from "../../../runs/steps/boot-device.ts";
import { listMachines } from "../../../store/machine/machines.ts";
import type { Caller } from "../../call/caller.ts";
import { checkIdList } from "../../call/id-list.ts";
import { unknownMachine } from "../../machine/machines.ts";
import type { RunDeps } from "../deps.ts";
import { startOwnPlan } from "../starts.ts";

export type { PowerOperation } from "../../../runs/plans/machine-power.ts";
export type BootDeviceWord = (typeof BOOT_DEVICES)[number];

/** What came of a start on one machine of several: each is answered for itself. */
export interface MachineResult {
  readonly machineId: string;
  readonly started: Run | AppError;
}

interface OnMachines {
  readonly machineIds: readonly string[];
  /** Counts for each machine by itself. */
  readonly requestId: string;
}

export const setMachinePower = (
  deps: RunDeps,
  caller: Caller,
  {
    operation,
    unlessInUse = false,
    ...on
  }: OnMachines & { readonly operation: PowerOperation | undefined; readonly unlessInUse?: boolean },
): Promise<MachineResult[]> => {
  if (operation === undefined)
    throw new AppError("invalid_argument", "operation: must be ON, OFF or CYCLE", { field: "operation" });
  return startOnEach(deps, caller, on, { ...powerPlan(operation), ...(unlessInUse && { unlessInUse }) });
};

export const setBootDevice = (
  deps: RunDeps,
  caller: Caller,
  { device, ...on }: OnMachines & { readonly device: BootDeviceWord | undefined },
): Promise<MachineResult[]> => {
  if (device === undefined)
    throw new AppError("invalid_argument", `device: must be one of ${BOOT_DEVICES.join(", ")}`, { field: "device" });
  return startOnEach(deps, caller, on, bootDevicePlan(device));
};

async function startOnEach(
  deps: RunDeps,
  caller: Caller,
  { machineIds, requestId }: OnMachines,
  plan: Plan,
): Promise<MachineResult[]> {
  const ids = checkMachineIds(deps, machineIds);
  return Promise.all(
    ids.map(async (machineId): Promise<MachineResult> => {
      try {
        return { machineId, started: await startOwnPlan(deps, caller, { machineId, requestId, plan }) };
      } catch (error) {
        // What is wrong with the request, or with the server, is the answer to all of it.
        if (!(error instanceof AppError) || error.detail.field === "request_id" || error.kind === "unavailable")
          throw error;
        return { machineId, started: error };
      }
    }),
  );
}

const checkMachineIds = ({ maxFindByIds }: RunDeps, ids: readonly string[]) =>
  checkIdList(ids, { field: "machine_ids", most: maxFindByIds, parse: parseMachineId });

export interface MachinePowerReading {
  readonly machineId: string;
  /** As its BMC says now; as it said last where it does not answer. */
  readonly power: PowerState;
  /** Why it could not be read now; empty where it was. */
  readonly error: string;
  /** The run that switched it off on purpose; empty where it is not off, or nobody did. */
  readonly offByRun: string;
}

/** Asks the BMCs, all at once, and changes nothing. */
export async function readMachinePower(
  deps: RunDeps,
  machineIds: readonly string[],
  signal: AbortSignal,
): Promise<MachinePowerReading[]> {
  const ids = checkMachineIds(deps, machineIds);
  const found = new Map<string, Machine>(
    (await listMachines(deps.db, { ids })).map((machine) => [machine.id, machine]),
  );
  const machines = ids.map((id) => {
    const machine = found.get(id);
    if (!machine) throw unknownMachine(id);
    return machine;
  });
  return Promise.all(machines.map((machine) => readOne(deps, machine, signal)));
}

async function readOne(deps: RunDeps, machine: Machine, signal: AbortSignal): Promise<MachinePowerReading> {
  const { id: machineId, facts } = machine;
  const shown = (power: PowerState, error: string): MachinePowerReading => ({
    machineId,
    power,
    error,
    offByRun: power === "off" ? (facts.offOnPurpose?.run ?? "") : "",
  });
  try {
    if (!deps.readPower) throw new AppError("unsupported", "this server reaches no machines");
    return shown(await deps.readPower(machine, signal), "");
  } catch (error) {
    if (!(error instanceof StepFailure || error instanceof AppError)) throw error;
    return shown(facts.powerState ?? "unknown", messageOf(error));
  }
}
