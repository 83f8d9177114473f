/** Where the things of a kind are listed, and the field of that list that holds their state. */
const LISTS: Readonly<Record<string, { readonly to: string; readonly field: string }>> = {
  machine: { to: "/machines", field: "phase" },
  rack: { to: "/racks", field: "state" },
  power_shelf: { to: "/power-shelves", field: "state" },
  switch: { to: "/switches", field: "state" },
  install: { to: "/installs", field: "state" },
  fleet_node: { to: "/fleet-nodes", field: "state" },
};

/** The list of what is in a state; undefined where the console has none. */
export function listOfState(kind: string, state: string) {
  const list = LISTS[kind];
  return list && { to: list.to, filter: `${list.field}=${state}` };
}
