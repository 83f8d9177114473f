import { create } from "@bufbuild/protobuf";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import type { Session } from "../../client/session.ts";
import type { DescribedKind } from "../device/metadata.ts";
import { findIdByName, type NamedKind, resolveName, resolveNames } from "../device/names.ts";

const idsOf = (switches: readonly { readonly id?: { readonly id: string } | undefined }[]): string[] =>
  switches.flatMap(({ id }) => id?.id ?? []);

const switches: NamedKind = {
  nouns: "switches",
  async findByIds(session, ids) {
    const forge = await session.client(Forge);
    const switchIds = ids.map((id) => ({ id }));
    return idsOf((await forge.findSwitchesByIds({ switchIds }, { signal: session.signal })).switches);
  },
  async findByName(session, name) {
    const forge = await session.client(Forge);
    return idsOf((await forge.findSwitches({ name }, { signal: session.signal })).switches);
  },
};

/** The id of the switch that people mean by an id or a name. */
export const resolveSwitch = (session: Session, word: string): Promise<string> => resolveName(session, switches, word);
export const resolveSwitches = (session: Session, words: readonly string[]): Promise<string[]> =>
  resolveNames(session, switches, words);
export const findSwitchByName = (session: Session, name: string): Promise<string | undefined> =>
  findIdByName(session, switches, name);

export const describedSwitches: DescribedKind = {
  noun: "switch",
  listCommand: "millwright switch list --deleted include",
  resolve: resolveSwitch,
  async read(session, id) {
    const forge = await session.client(Forge);
    const [found] = (await forge.findSwitches({ switchId: { id } }, { signal: session.signal })).switches;
    return found && { metadata: found.metadata ?? create(MetadataSchema), version: found.version };
  },
  async update(session, id, change) {
    const forge = await session.client(Forge);
    await forge.updateSwitchMetadata({ switchId: { id }, ...change }, { signal: session.signal });
  },
};
