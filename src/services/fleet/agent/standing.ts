import { createBatcher } from "../../../kernel/batcher.ts";
import { AppError } from "../../../kernel/errors.ts";
import { type AgentStanding, findStandings } from "../../../store/fleet/agents.ts";
import type { Queryable } from "../../../store/postgres/database.ts";
import type { Caller } from "../../call/caller.ts";

const MOST = 500;
const AT_ONCE = 2;

/** The same for whoever is not the agent of the node, whatever the reason: nobody learns of a node by trying. */
const notItsAgent = (): AppError =>
  new AppError("permission_denied", "the bearer token is not that of this node's agent", {
    next: "enrol the node again: millwright fleet bootstrap reissue makes a token for it",
  });

/** Says whether the caller is the agent of the node, as enrolment made it. Many ask at once, and cost a few queries. */
export type RequireAgent = (caller: Caller, nodeId: string) => Promise<AgentStanding>;

export function requiringAgent(db: Queryable): RequireAgent {
  const standings = createBatcher<string, AgentStanding | undefined>({
    most: MOST,
    atOnce: AT_ONCE,
    async run(ids) {
      const found = await findStandings(db, [...new Set(ids)]);
      return ids.map((id) => found.get(id));
    },
  });
  return async ({ agent }, nodeId) => {
    if (agent?.nodeId !== nodeId) throw notItsAgent();
    const standing = await standings.submit(nodeId);
    // Another enrolment, or the removal of the node, ends it at once, whatever a replica still has in its cache.
    if (standing?.tokenId !== agent.tokenId || standing.nodeState === "deleted") throw notItsAgent();
    return standing;
  };
}
