import { asked, caused, GONE, on } from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { ExploreResult } from "./expected-device.ts";

/** What the API shows of it, until the explorer has something newer to tell. */
const shownAs = (explored: ExploreResult) => ({ sets: () => ({ explored }) });
/** Whatever was found out belongs to the row as it was, also which certificate its BMC showed. */
const exploredAnew = { sets: () => ({ explored: "pending", certificateFingerprint: null }) };

/** How an expected device becomes one: found, identified, linked; detached when that device is deleted. */
export const expectedDeviceTable = <const D extends string>(noun: string, deleted: D) =>
  ({
    initial: "exploring",
    quietFacts: ["exploredAt"],

    // biome-ignore format: a table is read by its columns
    states: {
      exploring: { sla: minutes(15), doc: "The explorer contacts the BMC with the given credentials and compares the serial number." },
      linked:    { rest: true,       doc: `Its ${noun} exists.` },
      detached:  { rest: true,       doc: `Its ${noun} was deleted. Not explored again until this row is updated or added again.` },
    },

    // biome-ignore format: a table is read by its columns
    transitions: [
      // from       trigger              to
      ["exploring", on("identified"),    "linked"],
      ["exploring", asked("update"),     "exploring", exploredAnew],
      ["exploring", asked("remove"),     GONE],
      ["linked",    caused(deleted),     "detached",  shownAs("detached")],
      ["linked",    asked("update"),     "linked"],
      ["linked",    asked("remove"),     GONE],
      ["detached",  asked("update"),     "exploring", exploredAnew],
      ["detached",  asked("remove"),     GONE],
    ],
  }) as const;
