import { type Access, createAccess } from "../../api/auth/access.ts";
import type { Explainers } from "../../services/explain/explain.ts";
import type { Listings } from "../../services/overview/listings.ts";
import { collectThingStores, type ThingStores } from "../../store/lifecycle/things.ts";
import { SHARED_ROLES } from "../shared-services.ts";
import { batch } from "./batch.ts";
import { expectedPowerShelf } from "./expected-power-shelf.ts";
import { expectedRack } from "./expected-rack.ts";
import { expectedSwitch } from "./expected-switch.ts";
import { fleetAllocation } from "./fleet-allocation.ts";
import { fleetNode } from "./fleet-node.ts";
import { fleetTask } from "./fleet-task.ts";
import { hostReprovision } from "./host-reprovision.ts";
import { install } from "./install.ts";
import { machine } from "./machine.ts";
import { powerShelf } from "./power-shelf.ts";
import { rack } from "./rack.ts";
import { rackFirmware } from "./rack-firmware.ts";
import { restoreReview } from "./restore-review.ts";
import { run } from "./run.ts";
import { switchThing } from "./switch.ts";
import type { ThingParts } from "./thing.ts";

/** Every kind of thing that has a lifecycle. A new kind is a file beside this one and a name in this list. */
export const allThings: readonly ThingParts[] = [
  powerShelf,
  expectedPowerShelf,
  machine,
  run,
  install,
  batch,
  rack,
  rackFirmware,
  switchThing,
  expectedSwitch,
  hostReprovision,
  expectedRack,
  fleetNode,
  fleetAllocation,
  fleetTask,
  restoreReview,
];

export function storesOf(things: readonly ThingParts[]): ThingStores {
  const kinds = things.map(({ store }) => store.lifecycle.kind);
  const twice = kinds.find((kind, at) => kinds.indexOf(kind) !== at);
  if (twice !== undefined) throw new Error(`${twice} is registered twice`);
  return collectThingStores(things.map(({ store }) => store));
}

export const explainersOf = (things: readonly ThingParts[]): Explainers =>
  new Map(things.flatMap(({ store, explain }) => (explain ? [[store.lifecycle.kind, explain] as const] : [])));

/** How the things of each kind are listed, for those that have a list. */
export const listingsOf = (things: readonly ThingParts[]): Listings =>
  new Map(things.flatMap(({ store, listing }) => (listing ? [[store.lifecycle.kind, listing] as const] : [])));

export const accessOf = (things: readonly ThingParts[]): Access =>
  createAccess([
    ...things.map(({ roles = {}, things: about = {}, methodGroup = null }) => ({
      roles,
      things: about,
      group: methodGroup,
    })),
    ...SHARED_ROLES,
  ]);

/** What the server has, for those that need no other things: tests, measurements and the generated pages. */
export const allStores = storesOf(allThings);
export const access = accessOf(allThings);
