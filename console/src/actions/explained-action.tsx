import type { NextCommand } from "../../../contract/millwright/v1/explain_pb.js";
import { ActionDialog } from "./action-dialog.tsx";
import { actionOf } from "./action-of-command.ts";

interface ExplainedActionProps {
  readonly next: NextCommand;
  readonly onClose: () => void;
}

/** What an explanation says that helps, done by the call that it names. What the call lacks is asked for. */
export function ExplainedAction({ next, onClose }: ExplainedActionProps) {
  const action = actionOf(next);
  return action ? <ActionDialog action={action} onClose={onClose} /> : null;
}
