import type { KindCounts } from "../../../../contract/millwright/v1/overview_pb.js";

/** Records of what is to be, and parts of the work on others: they are there, and are not what people call a fleet. */
const SERVES_OTHERS = /^expected_|_task$|_allocation$|^host_|^batch$|^run$/;

/** The kinds of which there are things, the most numerous first. */
export const fleetOf = (kinds: readonly KindCounts[]): readonly KindCounts[] =>
  kinds
    .filter(({ kind, things }) => things > 0n && !SERVES_OTHERS.test(kind))
    .toSorted((a, b) => Number(b.things - a.things));
