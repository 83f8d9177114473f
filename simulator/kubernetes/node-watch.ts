import type { ServerResponse } from "node:http";
import type { ApiCall } from "./api-call.ts";
import type { NodeObject } from "./node-object.ts";
import { selectedNodes } from "./node-routes.ts";

/** How often the nodes are compared with what was last sent. Real time; nothing is compared while nobody watches. */
const LOOK_EVERY_MS = 100;

/** `watch=true`: one line of JSON for each change, until the client or its `timeoutSeconds` ends it. */
export function watchNodes(call: ApiCall, response: ServerResponse): void {
  const since = Number(call.query.get("resourceVersion") ?? "0");
  const sent = new Map<string, NodeObject>();
  // Whoever names a version has seen what was there then.
  for (const node of selectedNodes(call))
    if (since > 0 && Number(node.metadata.resourceVersion) <= since) sent.set(node.metadata.name, node);
  response.writeHead(200, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" });
  response.flushHeaders();
  const look = () => {
    const present = new Map(selectedNodes(call).map((node) => [node.metadata.name, node]));
    for (const [name, node] of present) {
      const before = sent.get(name);
      if (before?.metadata.resourceVersion === node.metadata.resourceVersion) continue;
      send(response, before === undefined ? "ADDED" : "MODIFIED", node);
      sent.set(name, node);
    }
    for (const [name, node] of sent) {
      if (present.has(name)) continue;
      send(response, "DELETED", node);
      sent.delete(name);
    }
  };
  look();
  const timer = setInterval(look, LOOK_EVERY_MS);
  timer.unref();
  const seconds = Number(call.query.get("timeoutSeconds") ?? "0");
  const end = seconds > 0 ? setTimeout(() => response.end(), seconds * 1_000) : undefined;
  end?.unref();
  response.on("close", () => {
    clearInterval(timer);
    clearTimeout(end);
  });
}

const send = (response: ServerResponse, type: "ADDED" | "MODIFIED" | "DELETED", object: NodeObject): void =>
  void response.write(`${JSON.stringify({ type, object })}\n`);
