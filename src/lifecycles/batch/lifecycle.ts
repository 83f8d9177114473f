import { defineLifecycle } from "../../kernel/lifecycle.ts";
import type { Batch } from "./batch.ts";

/** A batch is there to be referred to. What is done with its machines, and what came of it, is in the run that has it as its target. */
export const batchLifecycle = defineLifecycle<Batch>()({
  kind: "batch",
  initial: "frozen",
  quietFacts: [],
  states: {
    frozen: { rest: true, doc: "The set of machines is as it was when the runs were started." },
  },
  transitions: [],
});
