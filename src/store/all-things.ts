import { expectedPowerShelfStore } from "./expected-power-shelves.ts";
import { machineStore } from "./machines.ts";
import { powerShelfStore } from "./power-shelves.ts";
import { runStore } from "./runs.ts";
import { collectThingStores } from "./things.ts";

/** Every kind of thing that has a lifecycle. A new kind is added here, and everything that treats all alike knows it. */
export const allThings = collectThingStores([powerShelfStore, expectedPowerShelfStore, machineStore, runStore]);
