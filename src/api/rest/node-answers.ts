import type { ServiceDeps } from "../../services/call/deps.ts";
import { getInstall } from "../../services/install/installs.ts";
import { objectOf, one } from "./envelopes.ts";
import { node, nodeJson } from "./node-schemas.ts";

/** The heading that routes of nodes stand below. */
export const NODES = "nodes";
export const UNKNOWN_NODE = { 404: "There is no such node." };
export const nodeAnswer = objectOf(node);

/** The node as it is now. */
export async function answerNode(services: ServiceDeps, id: string, message: string | null = null) {
  return one(nodeJson(await getInstall(services, id)), message);
}
