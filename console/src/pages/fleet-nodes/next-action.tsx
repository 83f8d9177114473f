import { type FleetNodeDetail, FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { ActionBar } from "../../actions/action-bar.tsx";
import { actionOf } from "../../actions/called-action.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import classes from "./next-action.module.css";

/** What somebody does next, first of all on the page. */
export function NextAction({ detail: { nextCommand, nextWhy, nextCall } }: { readonly detail: FleetNodeDetail }) {
  const action = actionOf(FleetNodeService, { command: nextCommand, why: nextWhy, call: nextCall });
  if (nextCommand === "" && nextWhy === "") return null;
  return (
    <section className={classes.next} aria-label="Next" data-idle={nextCommand === "" || undefined}>
      <h2>{nextCommand === "" ? "Nothing to do" : "Do next"}</h2>
      <p>{nextWhy}</p>
      {nextCommand !== "" && (
        <p className={classes.command}>
          {action && <ActionBar actions={[action]} />}
          <code>{nextCommand}</code> <CopyButton text={nextCommand} what={nextCommand} />
        </p>
      )}
    </section>
  );
}
