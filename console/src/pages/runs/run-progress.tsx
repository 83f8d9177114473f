import type { Run } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import classes from "./run-progress.module.css";

/** How many of its steps are done. Workflows may enter a step again, so that it is never more than all. */
export function RunProgress({ run }: { readonly run: Run }) {
  const all = run.plan?.steps.length ?? 0;
  const done = run.steps.filter(({ finishedAt }) => finishedAt !== undefined).length;
  if (all === 0) return null;
  const share = Math.min(1, done / all);
  return (
    <span className={classes.progress} title={`${Math.min(done, all)} of ${all} steps`}>
      <span className={classes.track}>
        <span className={classes.done} style={{ width: `${share * 100}%` }} />
      </span>
      <span className="dim">
        {Math.min(done, all)}/{all}
      </span>
    </span>
  );
}
