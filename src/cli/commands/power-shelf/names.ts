import { isConnectError, UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";

/** What the server takes for an id; everything else can only be a name. */
const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** As many as one call may list unless the server is told otherwise. */
const IDS_PER_CALL = 100;

/** The id of the shelf that people mean by an id or a name. */
export async function resolveShelf(session: Session, idOrName: string): Promise<string> {
  const [id = idOrName] = await resolveShelves(session, [idOrName]);
  return id;
}

/**
 * The same for many, in their order. An id wins over a name. What is neither stays as it is: it may be a shelf that is gone, and
 * else the server says what is wrong with it.
 */
export async function resolveShelves(session: Session, words: readonly string[]): Promise<string[]> {
  try {
    const known = await knownIds(
      session,
      words.filter((word) => ID.test(word)),
    );
    return await Promise.all(
      words.map(async (word) => (known.has(word) ? word : ((await findIdByName(session, word)) ?? word))),
    );
  } catch (error) {
    // Who may act and not look has nothing but ids.
    const { Code } = await import("@connectrpc/connect");
    if (isConnectError(error) && [Code.PermissionDenied, Code.Unimplemented].includes(error.code)) return [...words];
    throw error;
  }
}

async function knownIds(session: Session, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { Forge } = await import("../../../../contract/forge/forge_pb.js");
  const forge = await session.client(Forge);
  const known = new Set<string>();
  for (let at = 0; at < ids.length; at += IDS_PER_CALL) {
    const powerShelfIds = ids.slice(at, at + IDS_PER_CALL).map((id) => ({ id }));
    const { powerShelves } = await forge.findPowerShelvesByIds({ powerShelfIds }, { signal: session.signal });
    for (const { id } of powerShelves) if (id) known.add(id.id);
  }
  return known;
}

/** Undefined when no shelf has the name; when several have it, it is not guessed at. */
export async function findIdByName(session: Session, name: string): Promise<string | undefined> {
  // The server takes an empty name for none, and answers with all shelves.
  if (name === "") return undefined;
  const { Forge } = await import("../../../../contract/forge/forge_pb.js");
  const forge = await session.client(Forge);
  const { powerShelves } = await forge.findPowerShelves({ name }, { signal: session.signal });
  const ids = powerShelves.map((shelf) => shelf.id?.id ?? "");
  if (ids.length > 1)
    throw new UsageError(
      `${ids.length} power shelves are named ${JSON.stringify(name)}`,
      `give the id: ${ids.join(", ")}`,
    );
  return ids[0];
}
