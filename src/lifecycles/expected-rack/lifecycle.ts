import { asked, caused, defineLifecycle, GONE } from "../../kernel/lifecycle.ts";
import type { ExpectedRack } from "./expected-rack.ts";

/** An expected rack is linked at once: a rack needs no BMC that would have to be found. */
export const expectedRackLifecycle = defineLifecycle<ExpectedRack>()({
  kind: "expected_rack",
  initial: "expected",

  // biome-ignore format: a table is read by its columns
  states: {
    expected: { rest: true, doc: "Its rack was deleted. It comes back when this row is updated, or when a device names it." },
    linked:   { rest: true, doc: "Its rack exists." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from      trigger                 to
    ["expected", caused("rack_created"), "linked"],
    ["expected", asked("update"),        "expected"],
    ["expected", asked("remove"),        GONE],
    ["linked",   caused("rack_deleted"), "expected"],
    ["linked",   asked("update"),        "linked"],
    ["linked",   asked("remove"),        GONE],
  ],
});
