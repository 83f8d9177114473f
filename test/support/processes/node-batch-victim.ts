import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { Thing } from "../../../src/kernel/lifecycle.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import type { Death } from "./batch-victim.ts";
import { openRunReplica } from "./run-replica.ts";

export interface NodeBatchVictimOrder {
  readonly url: string;
  readonly keyFile: string;
  readonly instance: string;
  /** Of the passes of the batch alone: the jobs of its nodes go on meanwhile. */
  readonly death: Death;
}

/** As a process of its own: a replica that works on everything, one thing at a time, up to where it dies in a pass of a batch of nodes. */
async function work({ death, ...options }: NodeBatchVictimOrder): Promise<void> {
  let isInBatch = false;
  let left = death.nth;
  watchFailPoints((failPoint) => {
    if (!isInBatch || failPoint !== death.failPoint) return;
    left -= 1;
    if (left === 0) die();
  });
  const around =
    (kind: string, handlers: HandlerOf): HandlerOf =>
    (state) => {
      const handler = handlers(state);
      return (
        handler &&
        (async (thing: Thing, frame) => {
          isInBatch = kind === "run" && (thing as RunThing).target.kind === "batch";
          return handler(thing, frame);
        })
      );
    };
  await openRunReplica({ ...options, handlesAll: true, inFlight: 1, around }).work();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await work(JSON.parse(order) as NodeBatchVictimOrder);
}
