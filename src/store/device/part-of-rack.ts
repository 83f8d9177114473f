import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import type { Place } from "../lifecycle/places.ts";

/** For the stores of devices that stand in a rack: what becomes of the device gives its rack a pass. */
export const partOfRack = {
  related: {
    rack: {
      of: ({ rackId }: { readonly rackId: string | null }) =>
        rackId === null ? null : { kind: rackLifecycle.kind, id: rackId },
      wakes: { butFor: [] },
    },
  },
};

/** Where they are, and where a site expects them. */
export const deviceOfRackPlace = (table: string): Place => ({
  table,
  rack: (row) => `${row}.rack_id`,
  labels: (row) => `${row}.labels`,
});
