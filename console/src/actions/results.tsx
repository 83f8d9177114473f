import { Button } from "@mantine/core";
import { ThingLink } from "../parts/thing-link.tsx";
import type { ActionResult } from "./action.ts";
import classes from "./results.module.css";

interface ResultsProps {
  readonly results: readonly ActionResult[];
  readonly onClose: () => void;
}

/** What came of each: what was refused comes first, with why and what helps. */
export function Results({ results, onClose }: ResultsProps) {
  const refused = results.filter(({ refusal }) => refusal !== "");
  const begun = results.filter(({ refusal }) => refusal === "");
  return (
    <div className={classes.results}>
      <p role="status">
        {begun.length} begun, {refused.length} refused
      </p>
      <ul>
        {[...refused, ...begun].map(({ kind, id, runId, refusal, next }) => (
          <li key={id}>
            <ThingLink kind={kind} id={id} />
            {runId !== undefined && <ThingLink kind="run" id={runId} />}
            {refusal !== "" && <span className={classes.refusal}>{refusal}</span>}
            {next !== "" && <code>{next}</code>}
          </li>
        ))}
      </ul>
      <Button variant="default" onClick={onClose} style={{ justifySelf: "end" }}>
        Close
      </Button>
    </div>
  );
}
