import type { Session } from "../../client/session.ts";

const ID = /^fn-[a-z0-9-]{1,60}$/;

/** The id of the node that is meant: every verb of `fleet` takes names. What looks like an id is one, also of a node that is gone. */
export async function resolveNode(session: Session, word: string): Promise<string> {
  if (ID.test(word)) return word;
  const { FleetNodeService } = await import("../../../../contract/millwright/v1/fleet_node_pb.js");
  const client = await session.client(FleetNodeService);
  const { node } = await client.getFleetNode({ node: word }, { signal: session.signal });
  return node?.node?.id ?? word;
}
