import { AppError } from "../../../kernel/errors.ts";
import { createBoundToken, revokeToken } from "../../../store/access/tokens.ts";
import { findAgent, replaceAgent } from "../../../store/fleet/agents.ts";
import { bearerFor, isTokenOf } from "../../../store/fleet/enrolment.ts";
import { fleetNodeStore } from "../../../store/fleet/nodes.ts";
import { commitOrRefuse } from "../../../store/lifecycle/commit/commit-or-refuse.ts";
import { lockThings } from "../../../store/lifecycle/locks.ts";
import * as work from "../../../store/lifecycle/work.ts";
import { retryOnConflict, type Transaction } from "../../../store/postgres/database.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";
import { AGENT_ROLE } from "../../call/roles.ts";
import { wakeJobsOf } from "./wake.ts";

export interface Enrolling {
  readonly nodeId: string;
  readonly token: string;
  /** Chosen by the agent: the same request once more, before its bearer was used, has the same answer. */
  readonly nonce: string;
  readonly address: string | null;
}

const KIND = fleetNodeStore.lifecycle.kind;

/** One answer for all that is wrong: who tries learns neither which nodes there are nor how far one is. */
const refusedEnrolment = (): AppError =>
  new AppError("unauthenticated", "the enrolment is refused: the token is not one that this node can enrol with now", {
    next: "an operator makes another token: millwright fleet bootstrap reissue",
  });

/** The bearer token of the node's agent. The agent of before, if there was one, is none any more. */
export const enrolAgent = (deps: ServiceDeps, request: Enrolling): Promise<{ readonly bearer: string }> =>
  retryOnConflict(() => deps.db.transaction((tx) => enrol(tx, deps, request)));

async function enrol(tx: Transaction, deps: ServiceDeps, request: Enrolling): Promise<{ readonly bearer: string }> {
  const { nodeId, address } = request;
  await lockThings(tx, [{ kind: KIND, id: nodeId }]);
  const [node] = (await fleetNodeStore.load(tx, [nodeId])).things;
  const enrollment = node?.facts.enrollment;
  if (!node || !enrollment || !isTokenOf(enrollment, request.token)) throw refusedEnrolment();
  if (node.state.name === "deleted" || node.state.name === "removing") throw refusedEnrolment();
  const bearer = bearerFor(deps.secrets, request);
  const before = await findAgent(tx, nodeId);
  if (enrollment.consumedAt !== null) {
    const isRepeated = before?.tokenId === bearer.id && before.requestSha.equals(bearer.requestSha);
    if (isRepeated && before.usedAt === null) return { bearer: bearer.token };
    throw refusedEnrolment();
  }
  const now = nowOf(deps);
  if (Date.parse(enrollment.expiresAt) <= now.getTime()) throw refusedEnrolment();
  const actor = `agent of ${nodeId}`;
  if (before) await revokeToken(tx, before.tokenId, now);
  await createBoundToken(tx, bearer, { name: actor, roles: [AGENT_ROLE], createdBy: actor, boundTo: nodeId });
  await replaceAgent(tx, { nodeId, tokenId: bearer.id, issue: enrollment.issue, requestSha: bearer.requestSha });
  const facts = { enrollment: { ...enrollment, consumedAt: now.toISOString() } };
  await commitOrRefuse(tx, deps.stores, [{ kind: KIND, thing: node, facts, actor, address }]);
  await work.wake(tx, [{ kind: KIND, id: nodeId }]);
  await wakeJobsOf(tx, [nodeId]);
  return { bearer: bearer.token };
}
