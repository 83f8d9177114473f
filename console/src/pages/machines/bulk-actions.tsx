import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import {
  MachinePowerService,
  PowerOperation,
  PowerOperationSchema,
} from "../../../../contract/millwright/v1/machine_pb.js";
import type { Action, ActionResult } from "../../actions/action.ts";
import { defineAction } from "../../actions/action.ts";
import { countWords } from "../../parts/count-words.ts";
import { Radius } from "./radius.tsx";

/** As many as one call takes. */
export const MOST_AT_ONCE = 100;

/** What can be done with the very machines that were selected, whatever the filter admits by then. */
export function bulkActionsOf(machines: readonly Machine[]): readonly Action[] {
  const ids = machines.map(({ machineId }) => machineId);
  return PowerOperationSchema.values
    .filter(({ number }) => number !== PowerOperation.UNSPECIFIED)
    .map(({ number, localName }) => {
      const word = localName.toLowerCase();
      return defineAction({
        label: `Power ${word} ${countWords(ids.length, "machine")}`,
        says: `Has the BMCs of ${countWords(ids.length, "machine")} switch their power: ${word}. Their systems are not shut down first. Each is a run of its own; a machine that cannot be is refused by itself.`,
        method: MachinePowerService.method.setMachinePower,
        request: { machineIds: ids, operation: number },
        cli: `millwright machine power ${word} ${ids.join(" ")}`,
        isDangerous: number !== PowerOperation.ON,
        preview: <Radius machines={machines} />,
        resultsOf,
      });
    });
}

function resultsOf(answer: unknown): readonly ActionResult[] {
  const { results } = answer as {
    readonly results: readonly {
      readonly machineId: string;
      readonly run?: { readonly runId: string };
      readonly refusal: string;
      readonly next: string;
    }[];
  };
  return results.map(({ machineId, run, refusal, next }) => ({
    ...{ kind: "machine", id: machineId, refusal, next },
    ...(run && { runId: run.runId }),
  }));
}
