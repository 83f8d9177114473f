import { waitFor } from "../../kernel/outcome.ts";
import { type Duration, minutes, seconds } from "../../kernel/time/duration.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { RunContext } from "./run-context.ts";
import type { PassOutcome } from "./step/work.ts";

/** While replicas are replaced, one of them may lack a workflow or a step kind that another one has. */

const ASK_AGAIN: Duration = seconds(10);
/** A cancel always ends: as long as it is left to a server that has what the undo needs. */
const COMES_WITHIN: Duration = minutes(15);

/** Another replica, of the version that started the run, takes it up; or this one does once it is replaced. */
export const leaveToAnotherServer = (why: string): PassOutcome =>
  waitFor(why, ASK_AGAIN, { cause: { code: "not_on_this_server" } });

/** Whether a run that is being canceled may still be left to another server. */
export function mayAnotherServerCome({ cancelRequestedAt, facts }: RunThing, { clock }: RunContext): boolean {
  const since = Math.max(cancelRequestedAt?.getTime() ?? 0, facts.startedAt?.getTime() ?? 0);
  return clock.now().getTime() - since <= COMES_WITHIN;
}
