import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { Facts } from "../../parts/facts.tsx";
import { blastRadiusOf } from "./blast-radius.ts";

const MOST_NAMED = 6;

const named = (names: readonly string[]): string =>
  names.length <= MOST_NAMED
    ? names.join(", ")
    : `${names.slice(0, MOST_NAMED).join(", ")} and ${names.length - MOST_NAMED} more`;

/** What an action on these machines would reach: shown before anything is done. */
export function Radius({ machines }: { readonly machines: readonly Machine[] }) {
  const { racks, customers, clusters, held } = blastRadiusOf(machines);
  return (
    <Facts
      facts={[
        { name: "Machines", value: named(machines.map(({ machineId }) => machineId)) },
        { name: "Racks", value: named(racks) },
        { name: "Customers", value: named(customers) },
        { name: "Meant for clusters", value: named(clusters) },
        { name: "Worked on by others", value: named(held) },
      ]}
    />
  );
}
