import { expect, test } from "vitest";
import { wholeRack } from "../../../test/support/racks/whole-rack.ts";
import type { WorkSet } from "../../lifecycles/rack/rack.ts";
import { rackStore } from "./racks.ts";

const workSet: WorkSet = {
  machines: ["m1"],
  switches: ["sw1"],
  shelves: [],
  keptUnassigned: ["m1", "m2"],
  leftOut: [],
  firmware: null,
  fabric: false,
  isOff: false,
  barsForMs: 0,
};
const claimed = (set: WorkSet) =>
  rackStore
    .claims?.(
      wholeRack("maintenance", { facts: { topology: null, hasValidated: true, failedByItself: false, workSet: set } }),
    )
    ?.targets.map(({ kind, id }) => `${kind} ${id}`);

test("a rack holds what it works on, and the trays that depend on it, each once", () => {
  expect(claimed(workSet)).toEqual(["rack rack-1", "machine m1", "machine m2", "switch sw1"]);
  const { keptUnassigned: _, ...ofBefore } = workSet;
  expect(claimed(ofBefore), "as it was put on record before").toEqual(["rack rack-1", "machine m1", "switch sw1"]);
});
