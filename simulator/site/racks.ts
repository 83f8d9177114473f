import type { ShelfLayout } from "../devices/power-shelf.ts";

/** What a rack is, beside the devices in it. */
export interface RackSpec {
  readonly id: string;
  readonly layout: ShelfLayout;
  /** What firmware is for. */
  readonly hardwareType: string;
  readonly counts: { readonly compute: number; readonly switches: number; readonly powerShelves: number };
}

export const hardwareTypeOf = (layout: ShelfLayout): string => `gb200-${layout}`;

/** Racks with the same profile have the same numbers of everything. */
export function profileNameOf({ layout, counts: { compute, switches, powerShelves } }: RackSpec): string {
  const isUsual = compute === 18 && switches === 9 && powerShelves === 8;
  return isUsual ? `nvl72-${layout}` : `${layout}-${compute}-${switches}-${powerShelves}`;
}

/** What a rack of that kind should have in it. */
export const profileOf = (rack: RackSpec) => ({
  name: profileNameOf(rack),
  hardware_type: rack.hardwareType,
  topology: "gb200_nvl72r1_c2g4",
  class: "prod",
  compute: { name: "GB-2U-96C", count: rack.counts.compute, vendor: "Generic", watts: 6_000 },
  switches: { name: "N5110_LD", count: rack.counts.switches, vendor: "NVIDIA", watts: 1_250 },
  power_shelves: { count: rack.counts.powerShelves },
});
