import { Run_PhaseSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import type { ChildRun } from "../../../../contract/millwright/v1/run_pb.js";
import { enumName } from "../../api/enum-names.ts";
import { harmless } from "../../api/hostile-text.ts";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import classes from "./children.module.css";

/** The runs that a run has started, and those that they have started. */
export function Children({ runs }: { readonly runs: readonly ChildRun[] }) {
  return (
    <ul className={classes.children}>
      {runs.map(({ runId, target, phase, step, currentStep, message, startedAt, finishedAt, children }) => (
        <li key={runId}>
          <div className={classes.child}>
            <StateChip kind="run" id={runId} state={enumName(Run_PhaseSchema, phase)} since={finishedAt ?? startedAt} />
            <ThingLink kind="run" id={runId} />
            {target && <ThingLink kind={target.kind} id={target.id} withKind />}
            <span className="dim">{currentStep || step}</span>
            <span className={classes.says}>{harmless(message)}</span>
          </div>
          {children.length > 0 && <Children runs={children} />}
        </li>
      ))}
    </ul>
  );
}
