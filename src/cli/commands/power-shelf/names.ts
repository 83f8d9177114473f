import type { Session } from "../../client/session.ts";
import * as names from "../device/names.ts";

const forgeOf = async (session: Session) =>
  session.client((await import("../../../../contract/forge/forge_pb.js")).Forge);
const idsOf = (shelves: readonly { readonly id?: { readonly id: string } | undefined }[]): string[] =>
  shelves.flatMap(({ id }) => id?.id ?? []);

const shelves: names.NamedKind = {
  nouns: "power shelves",
  async findByIds(session, ids) {
    const forge = await forgeOf(session);
    const powerShelfIds = ids.map((id) => ({ id }));
    return idsOf((await forge.findPowerShelvesByIds({ powerShelfIds }, { signal: session.signal })).powerShelves);
  },
  async findByName(session, name) {
    const forge = await forgeOf(session);
    return idsOf((await forge.findPowerShelves({ name }, { signal: session.signal })).powerShelves);
  },
};

export const resolveShelf = (session: Session, word: string): Promise<string> =>
  names.resolveName(session, shelves, word);
export const resolveShelves = (session: Session, words: readonly string[]): Promise<string[]> =>
  names.resolveNames(session, shelves, words);
export const findIdByName = (session: Session, name: string): Promise<string | undefined> =>
  names.findIdByName(session, shelves, name);
