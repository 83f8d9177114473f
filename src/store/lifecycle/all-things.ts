import type { Machine } from "../../lifecycles/machine/machine.ts";
import { expectedPowerShelfStore } from "../expected-power-shelf/expected-power-shelves.ts";
import { installStore } from "../install/installs.ts";
import { observeMachine } from "../machine/conditions.ts";
import { machineStore } from "../machine/machines.ts";
import { powerShelfStore } from "../power-shelf/power-shelves.ts";
import { runStore } from "../run/runs.ts";
import { collectThingStores, type ThingStore } from "./things.ts";

const machines: ThingStore<Machine> = { ...machineStore, observe: observeMachine, observedColumns: ["conditions"] };

/** Every kind of thing that has a lifecycle. A new kind is added here, and everything that treats all alike knows it. */
export const allThings = collectThingStores([
  powerShelfStore,
  expectedPowerShelfStore,
  machines,
  runStore,
  installStore,
]);
