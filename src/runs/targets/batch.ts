import type { Batch } from "../../lifecycles/batch/batch.ts";
import { batchLifecycle } from "../../lifecycles/batch/lifecycle.ts";
import type { TargetKind } from "./target-kind.ts";

/** A run on a batch changes nothing of the batch: it starts runs on the machines, and awaits them. */
export const batchTarget: TargetKind<Batch> = {
  kind: batchLifecycle.kind,
  whenStarted: () => [],
  whenEnded: () => [],
};
