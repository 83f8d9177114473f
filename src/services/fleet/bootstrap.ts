import { AppError } from "../../kernel/errors.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { bootstrapCommandOf } from "../../lifecycles/fleet-node/agent-bootstrap.ts";
import type { Enrollment, FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { FleetPolicy } from "../../lifecycles/fleet-node/policy.ts";
import { currentEnrolment, nextEnrolment } from "../../store/fleet/enrolment.ts";
import { listNodes } from "../../store/fleet/nodes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { findNode } from "./find-node.ts";
import { nodeKey, policyOf } from "./jobs.ts";

/** What the owner of a host is given: it enrols the host as the node, once, until it expires. */
export interface Bootstrap {
  /** One line, to be run on the host. It holds the token. */
  readonly command: string;
  readonly expiresAt: Date;
}

type Known = Pick<FleetNode, "id"> & { readonly enrollment: Enrollment | null };

/** @throws AppError where nobody has said at which address nodes reach the server: a bundle would lead nowhere. */
export function checkServer({ fleetServer = null }: Pick<ServiceDeps, "fleetServer">): string {
  if (fleetServer !== null) return fleetServer;
  throw new AppError(
    "failed_precondition",
    "this server does not know where fleet nodes reach it: set fleet.public_url and restart the server",
    { field: "mode" },
  );
}

/** The next token of a node, as it is kept: whoever holds the bundle of before cannot enrol with it any more. */
export const issueEnrollment = (
  deps: Pick<ServiceDeps, "secrets" | "clock">,
  { id, enrollment }: Known,
  { enrollment_token_ttl_seconds: ttl }: Pick<FleetPolicy, "enrollment_token_ttl_seconds">,
): Enrollment =>
  nextEnrolment(deps.secrets, { nodeId: id, enrollment, ttl: seconds(ttl), now: nowOf(deps) }).enrollment;

/** The bundle that the node can be enrolled with now; null: there is none, or it was used or has expired. */
export function bootstrapOf(deps: ServiceDeps, { id, mode, facts: { enrollment } }: FleetNode): Bootstrap | null {
  const now = nowOf(deps);
  if (mode !== "manual" || enrollment === null || enrollment.consumedAt !== null) return null;
  const expiresAt = new Date(enrollment.expiresAt);
  if (expiresAt <= now) return null;
  // The token follows from the node and the issue: it is kept nowhere.
  const { token, enrollment: current } = currentEnrolment(deps.secrets, {
    nodeId: id,
    enrollment,
    ttl: seconds(0),
    now,
  });
  if (current.issue !== enrollment.issue) return null;
  return { command: bootstrapCommandOf({ server: checkServer(deps), nodeId: id, token }), expiresAt };
}

/** Another bundle for a manual node whose owner has not used the one of before. That one is worth nothing any more. */
export async function reissueBootstrap(deps: ServiceDeps, caller: Caller, text: string): Promise<Bootstrap> {
  checkServer(deps);
  const { id } = await findNode(deps.db, text);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [nodeKey(id)]);
    const [node] = await listNodes(tx, { ids: [id] });
    if (!node) throw new AppError("not_found", `fleet node ${id} does not exist`, { next: "millwright fleet list" });
    if (node.mode !== "manual")
      throw new AppError(
        "failed_precondition",
        `fleet node ${node.hostname} is brought up by MAAS: its onboarding hands out its token`,
        {
          field: "node",
          next: `millwright fleet show ${id}`,
        },
      );
    const enrollment = issueEnrollment(deps, { id, enrollment: node.facts.enrollment }, await policyOf(tx, node));
    await applyVerb(tx, deps.stores, {
      ...{ kind: fleetNodeLifecycle.kind, id, owner: "caller", name: "reissue_bootstrap", ...doneBy(caller) },
      data: { enrollment },
    });
    await work.wake(tx, [nodeKey(id)]);
  });
  const node = await findNode(deps.db, id);
  const bootstrap = bootstrapOf(deps, node);
  if (!bootstrap) throw new AppError("conflict", `fleet node ${node.hostname} was changed by another call; call again`);
  return bootstrap;
}
