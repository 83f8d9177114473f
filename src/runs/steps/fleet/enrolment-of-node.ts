import type { CallContext } from "../../../capabilities/call.ts";
import type { Duration } from "../../../kernel/time/duration.ts";
import type { Enrollment } from "../../../lifecycles/fleet-node/fleet-node.ts";

/** How the agent of a node comes to enrol. */
export interface EnrolmentOfNode {
  /**
   * The token that the node enrols with now: that of the issue on record as long as it is good, so that a stage that is done twice hands out
   * the same; else the next one. It counts once the step's effects have put `enrollment` into the facts of the node.
   */
  issue(ttl: Duration): { readonly token: string; readonly enrollment: Enrollment };
  /**
   * User data of cloud-init by which the installed system starts its agent, with this token.
   * @throws StepFailure "not_on_this_server" where nobody has said at which address nodes reach this server
   */
  userDataWith(token: string): string;
  /**
   * Signs in to the installed system, with the SSH key on record for the machine, and has it start its agent with this token. Doing it
   * again leaves the same behind.
   *
   * @throws StepFailure
   */
  seed(
    order: { readonly address: string; readonly username: string; readonly token: string },
    call: CallContext,
  ): Promise<void>;
}
