import { ONLY_MAAS } from "../machine/in-maas.ts";
import type { Unfit } from "./payloads.ts";
import type { MaintenanceScope, Rack, RackRequest, RackShelf, RackSwitch, Tray, WorkSet } from "./rack.ts";

/** The devices that a maintenance works on. */
export interface InScope {
  readonly trays: readonly Tray[];
  readonly switches: readonly RackSwitch[];
  readonly shelves: readonly RackShelf[];
  readonly leftOut: WorkSet["leftOut"];
  readonly unfit: readonly Unfit[];
  readonly mustStayUnassigned: readonly string[];
  /** Of those, the ones that can be held: a tray of an unproven run is held by that. */
  readonly keptUnassigned: readonly string[];
}

export const isWholeRack = ({ machine_ids, switch_ids, power_shelf_ids }: MaintenanceScope): boolean =>
  machine_ids.length + switch_ids.length + power_shelf_ids.length === 0;

const WHY_ASSIGNED = {
  yes: "somebody uses it",
  unknown: "it was not checked yet whether somebody uses it",
} as const;

/**
 * Which devices are worked on. A tray that somebody uses, or may use, is left out; and while there is any in the rack, so are the
 * switches and shelves, on which it depends. A request that names or covers such a device is refused, unless it includes them. A tray
 * that is in MAAS is left out whatever is asked.
 */
export function scopeOf(rack: Rack, asked: RackRequest | null): InScope | { readonly refused: string } {
  const whole = asked === null || isWholeRack(asked.scope);
  const within = <D extends { readonly id: string }>(devices: readonly D[], ids: readonly string[] | undefined) =>
    whole ? devices : devices.filter(({ id }) => ids?.includes(id));
  const wanted = {
    trays: within(rack.trays, asked?.scope.machine_ids),
    switches: within(rack.switches, asked?.scope.switch_ids),
    shelves: within(rack.shelves, asked?.scope.power_shelf_ids),
  };
  const usesAll = asked?.include_assigned !== undefined;
  const inUse = usesAll ? [] : rack.trays.filter(({ assigned }) => assigned !== "no");
  const inMaas = wanted.trays.filter((tray) => tray.inMaas);
  const covered = inUse.filter((tray) => !tray.inMaas && wanted.trays.includes(tray));
  const dependsOn = inUse.length === 0 ? [] : [...wanted.switches, ...wanted.shelves];
  if (asked !== null && covered.length + dependsOn.length > 0) return { refused: describeInUse(inUse) };
  const trays = wanted.trays.filter((tray) => !tray.inMaas && !covered.includes(tray));
  const free = inUse.length === 0;
  return withoutUnproven(rack, {
    trays,
    switches: free ? wanted.switches : [],
    shelves: free ? wanted.shelves : [],
    leftOut: [
      ...inMaas.map(({ id }) => ({ id, why: ONLY_MAAS })),
      ...covered.map(({ id, assigned }) => ({ id, why: WHY_ASSIGNED[assigned === "yes" ? "yes" : "unknown"] })),
      ...dependsOn.map(({ id }) => ({ id, why: `tray ${inUse[0]?.id} of the rack may be in use and depends on it` })),
      ...(asked === null ? [] : goneOf(asked.scope, wanted)),
    ],
    // Where a switch or a shelf is worked on, no tray of the rack may come into use meanwhile.
    mustStayUnassigned: (wanted.switches.length + wanted.shelves.length > 0 && free ? rack.trays : trays).map(
      ({ id }) => id,
    ),
  });
}

/** For people, and for those who ask: which trays are in the way. */
export function describeInUse(inUse: readonly Pick<Tray, "id" | "assigned">[]): string {
  const ids = (assigned: Tray["assigned"]) => inUse.filter((tray) => tray.assigned === assigned).map(({ id }) => id);
  const [yes, unknown] = [ids("yes"), ids("unknown")];
  return [
    ...(yes.length > 0 ? [`assigned trays: ${yes.join(", ")}`] : []),
    ...(unknown.length > 0 ? [`trays that were not checked yet: ${unknown.join(", ")}`] : []),
  ].join("; ");
}

type Devices = Pick<InScope, "trays" | "switches" | "shelves">;

/** Devices that were named and have left the rack since. */
function goneOf(scope: MaintenanceScope, { trays, switches, shelves }: Devices): WorkSet["leftOut"] {
  const there = new Set([...trays, ...switches, ...shelves].map(({ id }) => id));
  return [...scope.machine_ids, ...scope.switch_ids, ...scope.power_shelf_ids]
    .filter((id) => !there.has(id))
    .map((id) => ({ id, why: "it is not in the rack any more" }));
}

/** What a run of before began may still be going on: the device is not touched, whatever else is done. */
function withoutUnproven(rack: Rack, scope: Omit<InScope, "unfit" | "keptUnassigned">): InScope {
  const unprovenOf = (kind: string, devices: readonly (Tray | RackSwitch | RackShelf)[]): Unfit[] =>
    devices.flatMap(({ id, unprovenRun }) =>
      unprovenRun === null
        ? []
        : [{ kind, id, why: `run ${unprovenRun} of an earlier maintenance may still write to it` }],
    );
  const unfit = [
    ...unprovenOf("machine", scope.trays),
    ...unprovenOf("switch", scope.switches),
    ...unprovenOf("power_shelf", scope.shelves),
  ];
  const isFit = ({ unprovenRun }: Tray | RackSwitch | RackShelf) => unprovenRun === null;
  return {
    ...scope,
    trays: scope.trays.filter(isFit),
    switches: scope.switches.filter(isFit),
    shelves: scope.shelves.filter(isFit),
    leftOut: [...scope.leftOut, ...unfit.map(({ id, why }) => ({ id, why }))],
    unfit,
    keptUnassigned: rack.trays
      .filter((tray) => isFit(tray) && scope.mustStayUnassigned.includes(tray.id))
      .map(({ id }) => id),
  };
}
