import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { ONLY_MAAS } from "../../lifecycles/machine/in-maas.ts";
import type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
import { childStep } from "../../runs/children/child-run.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { setDevicePower } from "../../runs/steps/rack/set-device-power.ts";
import { findPlacedDevices } from "../../store/component/devices.ts";
import { findInUse } from "../../store/lifecycle/claims/in-use.ts";
import type { MachineInUse } from "../../store/lifecycle/things.ts";
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
  const machines = operation === "on" ? [] : ids.map((id) => ({ kind: "machine", id }));
  const inUse = new Map((await findInUse(deps.db, deps.stores, machines)).map((each) => [each.id, each]));
  const outcomes = new Map<string, ComponentOutcome>();
  for (const [id, machine] of inUse) outcomes.set(id, refused(id, machineInUse(machine)));
  for (const [id, { inMaas }] of await findPlacedDevices(deps.db, "machine", ids))
    if (inMaas) outcomes.set(id, refused(id, refusal(`of machine ${id} ${ONLY_MAAS}`, "millwright fleet list")));
  const machineIds = ids.filter((id) => !outcomes.has(id));
  if (machineIds.length > 0) {
    if (!isRunDeps(deps)) throw new AppError("unsupported", "this server starts no runs");
    const results = await setMachinePower(deps, caller, {
      machineIds,
      requestId: randomUUID(),
      operation,
      unlessInUse: operation !== "on",
    });
    for (const { machineId: id, started } of results)
      outcomes.set(id, started instanceof AppError ? refused(id, started) : succeeded(id));
  }
  return ids.flatMap((id) => outcomes.get(id) ?? []);
}

const machineInUse = ({ id, isUnknown }: MachineInUse): AppError =>
  refusal(
    `machine ${id} ${isUnknown ? "may be in use: its cluster was not checked, or did not answer" : "is in use"}; ` +
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
  const unlessInUse = operation === "power_off";
  if (unlessInUse && shelf.rackId !== null) await refuseInUse(deps.db, deps, shelf.rackId, `power shelf ${id}`);
  const request = { powerShelfIds: [id], operation, unlessInUse, reference: "component-manager" };
  await setPowerShelfMaintenance(deps, caller, request);
}
