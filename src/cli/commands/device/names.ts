import { isConnectError, UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";

/** Devices that people call by ids or by names. */
export interface NamedKind {
  /** power shelves */
  readonly nouns: string;
  /** Those of the ids that there are. */
  readonly findByIds: (session: Session, ids: readonly string[]) => Promise<readonly string[]>;
  readonly findByName: (session: Session, name: string) => Promise<readonly string[]>;
}

/** What the server takes for an id; everything else can only be a name. */
const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** As many as one call may list unless the server is told otherwise. */
const IDS_PER_CALL = 100;

/** The id of the device that people mean by an id or a name. */
export async function resolveName(session: Session, kind: NamedKind, idOrName: string): Promise<string> {
  const [id = idOrName] = await resolveNames(session, kind, [idOrName]);
  return id;
}

/**
 * The same for many, in their order. An id wins over a name. What is neither stays as it is: it may be a device that is gone, and
 * else the server says what is wrong with it.
 */
export async function resolveNames(session: Session, kind: NamedKind, words: readonly string[]): Promise<string[]> {
  try {
    const known = await knownIds(
      session,
      kind,
      words.filter((word) => ID.test(word)),
    );
    return await Promise.all(
      words.map(async (word) => (known.has(word) ? word : ((await findIdByName(session, kind, word)) ?? word))),
    );
  } catch (error) {
    // Who may act and not look has nothing but ids.
    const { Code } = await import("@connectrpc/connect");
    if (isConnectError(error) && [Code.PermissionDenied, Code.Unimplemented].includes(error.code)) return [...words];
    throw error;
  }
}

async function knownIds(session: Session, kind: NamedKind, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  for (let at = 0; at < ids.length; at += IDS_PER_CALL)
    for (const id of await kind.findByIds(session, ids.slice(at, at + IDS_PER_CALL))) known.add(id);
  return known;
}

/** Undefined when no device has the name; when several have it, it is not guessed at. */
export async function findIdByName(session: Session, kind: NamedKind, name: string): Promise<string | undefined> {
  // The server takes an empty name for none, and answers with all devices.
  if (name === "") return undefined;
  const ids = await kind.findByName(session, name);
  if (ids.length > 1)
    throw new UsageError(
      `${ids.length} ${kind.nouns} are named ${JSON.stringify(name)}`,
      `give the id: ${ids.join(", ")}`,
    );
  return ids[0];
}
