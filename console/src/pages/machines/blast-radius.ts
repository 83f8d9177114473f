import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";

/** What a disturbance of machines reaches beside them. */
export interface BlastRadius {
  readonly machines: number;
  readonly racks: readonly string[];
  readonly customers: readonly string[];
  /** Clusters whose nodes are among them, by what the machines themselves are seen to be in. */
  readonly clusters: readonly string[];
  /** Those that somebody works on: they are refused, or wait. */
  readonly held: readonly string[];
}

const distinct = (values: readonly (string | undefined)[]): string[] =>
  [...new Set(values.filter((value): value is string => value !== undefined && value !== ""))].sort();

/** Of machines as they were when they were selected. */
export function blastRadiusOf(machines: readonly Machine[]): BlastRadius {
  return {
    machines: machines.length,
    racks: distinct(machines.map(({ spec }) => spec?.rack)),
    customers: distinct(machines.map(({ spec }) => spec?.customerId)),
    clusters: distinct(machines.map(({ spec }) => spec?.targetClusterRef)),
    held: distinct(
      machines.map(({ machineId, status }) => (status?.claim || status?.activeRunId ? machineId : undefined)),
    ),
  };
}
