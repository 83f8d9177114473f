import { z } from "zod";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { armNode } from "../../services/install/boot/arming.ts";
import { confirmErased as confirmNodeErased } from "../../services/install/boot/erasure.ts";
import { changeInstallState, changeManyInstallStates } from "../../services/install/state/state-changes.ts";
import { objectOf, one } from "./envelopes.ts";
import { answerNode, NODES, nodeAnswer, UNKNOWN_NODE } from "./node-answers.ts";
import * as schemas from "./node-schemas.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

interface Deps {
  readonly services: ServiceDeps;
}

const retireNode = ({ services }: Deps) =>
  defineRoute({
    method: "DELETE",
    path: "/api/v1/nodes/{id}",
    tag: NODES,
    summary: "Retires a node. Its record and its history stay.",
    params: schemas.nodeId,
    errors: { ...UNKNOWN_NODE, 400: "It is retired already, or a job works on its machine." },
    answer: nodeAnswer,
    async handle({ params: { id }, caller }) {
      await changeInstallState(services, caller, id, { state: "retired", comment: "", force: false });
      return answerNode(services, id, "Node retired");
    },
  });

const changeState = ({ services }: Deps) =>
  defineRoute({
    method: "PATCH",
    path: "/api/v1/nodes/{id}/state",
    tag: NODES,
    summary: "Takes a node to another state.",
    params: schemas.nodeId,
    body: schemas.stateTransition,
    example: { state: "pending", comment: "racked and cabled" },
    errors: {
      404: "There is no such node, no such workflow, or no machine with the id of the replacement.",
      400: "The transition is not possible, and the text ends with those that are; or a job works on the machine, or the replacement cannot take its place.",
    },
    answer: nodeAnswer,
    async handle({ params: { id }, body, caller }) {
      const changed = await changeInstallState(services, caller, id, {
        state: body.state,
        comment: body.comment ?? "",
        force: body.force,
        replacementId: body.replacement_id,
        workflowId: body.workflow_id,
      });
      return one(schemas.nodeJson(changed), `Node transitioned to ${body.state}`);
    },
  });

const changeManyStates = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/bulk/change-state",
    tag: NODES,
    summary: "Takes many nodes to a state, each on its own.",
    body: z.strictObject({
      node_ids: z.array(z.string()).min(1).max(1_000),
      new_state: schemas.installState,
      comment: schemas.comment,
    }),
    example: { node_ids: ["m-02005e100001"], new_state: "pending" },
    answer: objectOf(
      z.object({
        updated: z.int(),
        failed: z.int(),
        errors: z.array(z.object({ node_id: z.string(), error: z.string() })),
      }),
    ),
    async handle({ body: { node_ids, new_state, comment }, caller }) {
      const change = { state: new_state, comment: comment ?? "" };
      const results = await changeManyInstallStates(services, caller, node_ids, change);
      const errors = results.flatMap(({ id, error }) => (error === undefined ? [] : [{ node_id: id, error }]));
      return one({ updated: results.length - errors.length, failed: errors.length, errors });
    },
  });

const confirmErased = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/{id}/confirm-erased",
    tag: NODES,
    summary:
      "Retires a node that is deprovisioning: the caller vouches that its disks are erased, where no boot of it could prove that.",
    params: schemas.nodeId,
    body: z.strictObject({ comment: schemas.comment }),
    example: { comment: "disks shredded, certificate 4711" },
    errors: { ...UNKNOWN_NODE, 400: "The node is not deprovisioning." },
    answer: nodeAnswer,
    async handle({ params: { id }, body: { comment }, caller }) {
      const erased = await confirmNodeErased(services, caller, id, comment ?? "");
      return one(schemas.nodeJson(erased), "Node retired: confirmed as erased");
    },
  });

const armed = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/{id}/arm",
    tag: NODES,
    summary:
      "Expects the node to boot from now on: its next boot gets its script, for as long as install.armed_for says.",
    params: schemas.nodeId,
    body: z.strictObject({}).optional(),
    errors: { ...UNKNOWN_NODE, 400: "No boot of the node leads on." },
    answer: nodeAnswer,
    handle: async ({ params: { id }, caller }) =>
      one(schemas.nodeJson(await armNode(services, caller, id)), "Node armed: its next boot is expected"),
  });

/** Where people take nodes: to another state, one or many, and out for good. */
export const nodeStateRoutes = (deps: Deps): AnyRoute[] =>
  [retireNode, changeState, changeManyStates, confirmErased, armed].map((route) => route(deps));
