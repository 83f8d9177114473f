import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
import { childStep } from "../../runs/children/child-run.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { setDevicePower } from "../../runs/steps/rack/set-device-power.ts";
import { findPlacedDevices } from "../../store/component/devices.ts";
import { type AssignedTray, findMachinesInUse } from "../../store/rack/assigned.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { setPowerShelfMaintenance } from "../power-shelf/power-shelves.ts";
import type { RunDeps } from "../run/deps.ts";
import { type PowerOperation, setMachinePower } from "../run/many/machine-power.ts";
import { type ComponentKind, type ComponentTarget, checkTarget, NOUNS, unknownComponent } from "./component-ids.ts";
import { refusal, refuseInUse, startDeviceRun } from "./device-run.ts";
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

/** What there is no way to do yet: no system is asked to go down first. Each with what there is. */
const GRACEFUL = { graceful_shutdown: "force_off", graceful_restart: "force_restart" } as const;
type ForcedAction = Exclude<PowerAction, keyof typeof GRACEFUL>;

/** Whoever asks, the power of a machine is switched by a run, which reads back that it was. */
const OF_MACHINE: Readonly<Record<ForcedAction, PowerOperation>> = {
  on: "on",
  force_off: "off",
  force_restart: "cycle",
  ac_powercycle: "cycle",
};
/** A shelf feeds others: it is switched on and off, and never restarted under them. */
const OF_SHELF: Readonly<Partial<Record<ForcedAction, MaintenanceOperation>>> = {
  on: "power_on",
  force_off: "power_off",
};

/** Switches devices on, off, or off and on. Each way verifies what it did; the outcome says that it was accepted. */
export async function controlComponentPower(
  deps: ServiceDeps & Partial<RunDeps>,
  caller: Caller,
  { kind, action, ...target }: ComponentPower,
): Promise<readonly ComponentOutcome[]> {
  const ids = checkTarget(deps, { kind, ...target });
  if (isGraceful(action)) return ids.map((id) => refused(id, notGraceful(kind, id, action)));
  switch (kind) {
    case "machine":
      return controlMachines(deps, caller, ids, OF_MACHINE[action]);
    case "power_shelf":
      return forEach(ids, (id) => controlShelf(deps, caller, id, action));
    case "switch":
      return forEach(ids, (id) => controlSwitch(deps, caller, id, OF_MACHINE[action]));
  }
}

const isGraceful = (action: PowerAction): action is keyof typeof GRACEFUL => action in GRACEFUL;
const notGraceful = (kind: ComponentKind, id: string, action: keyof typeof GRACEFUL): AppError =>
  new AppError(
    "invalid_argument",
    `${NOUNS[kind]} ${id}: Millwright has no graceful way to switch it; shut its system down yourself, then use ${GRACEFUL[action]}`,
  );

/** All but switching on cuts the power of what runs: a machine that somebody uses, or may use, is not touched. */
async function controlMachines(
  deps: ServiceDeps & Partial<RunDeps>,
  caller: Caller,
  ids: readonly string[],
  operation: PowerOperation,
): Promise<readonly ComponentOutcome[]> {
  const inUse =
    operation === "on" ? new Map<string, AssignedTray["assigned"]>() : await findMachinesInUse(deps.db, ids);
  const outcomes = new Map<string, ComponentOutcome>();
  for (const [id, assigned] of inUse) outcomes.set(id, refused(id, machineInUse(id, assigned)));
  const machineIds = ids.filter((id) => !inUse.has(id));
  if (machineIds.length > 0) {
    if (!isRunDeps(deps)) throw new AppError("unsupported", "this server starts no runs");
    const results = await setMachinePower(deps, caller, { machineIds, requestId: randomUUID(), operation });
    for (const { machineId: id, started } of results)
      outcomes.set(id, started instanceof AppError ? refused(id, started) : succeeded(id));
  }
  return ids.flatMap((id) => outcomes.get(id) ?? []);
}

const machineInUse = (id: string, assigned: AssignedTray["assigned"]): AppError =>
  refusal(
    `machine ${id} ${assigned === "yes" ? "is in use" : "may be in use: its cluster was not checked, or did not answer"}; ` +
      `put it in maintenance and drain it first (millwright machine enter-maintenance ${id})`,
  );

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

async function controlShelf(deps: ServiceDeps, caller: Caller, id: string, action: ForcedAction): Promise<void> {
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
