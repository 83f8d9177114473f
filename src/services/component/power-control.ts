import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
import { childStep } from "../../runs/children/child-run.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { setDevicePower } from "../../runs/steps/rack/set-device-power.ts";
import { findPlacedDevices } from "../../store/component/devices.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { setPowerShelfMaintenance } from "../power-shelf/power-shelves.ts";
import type { RunDeps } from "../run/deps.ts";
import { type PowerOperation, setMachinePower } from "../run/many/machine-power.ts";
import { type ComponentKind, type ComponentTarget, checkTarget, unknownComponent } from "./component-ids.ts";
import { refuseInUse, startDeviceRun } from "./device-run.ts";
import { type ComponentOutcome, forEach, refused, succeeded } from "./results.ts";

/** The words of the contract. */
const POWER_ACTIONS = [
  "on",
  "graceful_shutdown",
  "force_off",
  "graceful_restart",
  "force_restart",
  "ac_powercycle",
] as const;
export type PowerAction = (typeof POWER_ACTIONS)[number];

export interface ComponentPower extends ComponentTarget {
  readonly kind: ComponentKind;
  readonly action: PowerAction;
}

/** Whoever asks, the power of a machine is switched by a run, which reads back that it was. */
const OF_MACHINE: Readonly<Record<PowerAction, PowerOperation>> = {
  on: "on",
  graceful_shutdown: "off",
  force_off: "off",
  graceful_restart: "cycle",
  force_restart: "cycle",
  ac_powercycle: "cycle",
};
/** A shelf feeds others: it is switched on and off, and never restarted under them. */
const OF_SHELF: Readonly<Partial<Record<PowerAction, MaintenanceOperation>>> = {
  on: "power_on",
  graceful_shutdown: "power_off",
  force_off: "power_off",
};

/** Switches devices on, off, or off and on. Each way verifies what it did; the outcome says that it was accepted. */
export async function controlComponentPower(
  deps: ServiceDeps & Partial<RunDeps>,
  caller: Caller,
  { kind, action, ...target }: ComponentPower,
): Promise<readonly ComponentOutcome[]> {
  const ids = checkTarget(deps, { kind, ...target });
  switch (kind) {
    case "machine":
      return controlMachines(deps, caller, ids, OF_MACHINE[action]);
    case "power_shelf":
      return forEach(ids, (id) => controlShelf(deps, caller, id, action));
    case "switch":
      return forEach(ids, (id) => controlSwitch(deps, caller, id, OF_MACHINE[action]));
  }
}

async function controlMachines(
  deps: ServiceDeps & Partial<RunDeps>,
  caller: Caller,
  machineIds: readonly string[],
  operation: PowerOperation,
): Promise<readonly ComponentOutcome[]> {
  if (!isRunDeps(deps)) throw new AppError("unsupported", "this server starts no runs");
  const results = await setMachinePower(deps, caller, { machineIds, requestId: randomUUID(), operation });
  return results.map(({ machineId, started }) =>
    started instanceof AppError ? refused(machineId, started) : succeeded(machineId),
  );
}

const powerStep = (desired: "on" | "off"): Step => childStep(setDevicePower, { desired }, { name: `power-${desired}` });
const SWITCH_STEPS: Readonly<Record<PowerOperation, readonly Step[]>> = {
  on: [powerStep("on")],
  off: [powerStep("off")],
  cycle: [powerStep("off"), powerStep("on")],
};

/** By a run, which reads back each half. The trays of its rack are cut off from each other meanwhile. */
const controlSwitch = (deps: ServiceDeps, caller: Caller, id: string, operation: PowerOperation): Promise<void> =>
  startDeviceRun(deps, caller, {
    kind: "switch",
    id,
    requestId: randomUUID(),
    disturbs: operation !== "on",
    planFor: async () => ({
      planId: `switch-power-${operation}`,
      displayName: `Power ${operation} of a switch`,
      steps: SWITCH_STEPS[operation],
    }),
  });

const isRunDeps = (deps: ServiceDeps & Partial<RunDeps>): deps is RunDeps => deps.steps !== undefined;

async function controlShelf(deps: ServiceDeps, caller: Caller, id: string, action: PowerAction): Promise<void> {
  const operation = OF_SHELF[action];
  if (operation === undefined)
    throw new AppError(
      "invalid_argument",
      `power shelf ${id} cannot be restarted under what it feeds: switch it off and on`,
    );
  const shelf = (await findPlacedDevices(deps.db, "power_shelf", [id])).get(id);
  if (!shelf) throw unknownComponent("power_shelf", id);
  if (operation === "power_off" && shelf.rackId !== null) await refuseInUse(deps.db, shelf.rackId, `power shelf ${id}`);
  await setPowerShelfMaintenance(deps, caller, { powerShelfIds: [id], operation, reference: "component-manager" });
}
