import type { Place } from "../lifecycle/places.ts";

export const machinePlace: Place = {
  table: "machines",
  rack: (row) => `${row}.rack`,
  // Where its node is, else where it is to go.
  cluster: (row) => `coalesce(${row}.facts ->> 'joinedCluster', ${row}.target_cluster)`,
  customer: (row) => `${row}.customer_id`,
  labels: (row) => `${row}.labels`,
};

/** For what a table says of machines: it is where the machine is. */
export const placeOfItsMachine = (table: string, column = "id"): Place => ({
  table,
  with: [{ place: machinePlace, id: (row) => `${row}.${column}` }],
});
