import type { Rack } from "../../../../contract/millwright/v1/rack_pb.js";

/** What a chip needs to know of a rack. */
export const standingOfRack = ({ id, state, stateSince, condition, failing, stuck }: Rack) => ({
  kind: "rack",
  id,
  state,
  since: stateSince,
  isWaiting: condition === "waiting",
  isFailing: failing || stuck,
  needsPerson: condition === "needs_intervention",
});
