import { serverSteps } from "../../../src/runs/steps/index.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";

/** The name of the place where a step has looked at the world and nothing of that is on record: also steps that only read come by it. */
export const PROBED = "step:probed";

/** The steps of the server; `probed` hears of each as soon as it has looked, before what it has seen counts. */
export const stepsHeardOf = (probed: (kind: string) => void): RunDeps["steps"] =>
  new Map(
    [...serverSteps].map(([kind, step]) => [
      kind,
      {
        ...step,
        async probe(context) {
          const seen = await step.probe(context);
          probed(kind);
          return seen;
        },
      },
    ]),
  );
