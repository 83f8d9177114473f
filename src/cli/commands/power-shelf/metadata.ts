import { create } from "@bufbuild/protobuf";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { type Metadata, MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import { PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { changeMetadata, type DescribedKind, putLabel } from "../device/metadata.ts";
import { resolveShelf } from "./names.ts";

export const describedShelves: DescribedKind = {
  noun: "power shelf",
  listCommand: "millwright power-shelf list --deleted include",
  resolve: resolveShelf,
  async read(session, id) {
    const forge = await session.client(Forge);
    const { powerShelves } = await forge.findPowerShelves({ powerShelfId: { id } }, { signal: session.signal });
    const shelf = powerShelves[0];
    return shelf && { metadata: shelf.metadata ?? create(MetadataSchema), version: shelf.version };
  },
  async update(session, id, change) {
    const forge = await session.client(Forge);
    await forge.updatePowerShelfMetadata({ powerShelfId: { id }, ...change }, { signal: session.signal });
  },
};

/** Takes over what the expected inventory says: what it leaves empty is kept, unless all is to be replaced. */
export async function metadataFromExpected(
  session: Session,
  id: string,
  { replaceAll }: { readonly replaceAll?: boolean },
): Promise<undefined> {
  const expected = await readExpectedMetadata(session, id);
  return changeMetadata(session, describedShelves, id, (metadata) => {
    metadata.name = expected.name || metadata.name;
    metadata.description = replaceAll ? expected.description : expected.description || metadata.description;
    if (replaceAll) metadata.labels = [];
    for (const { key, value } of expected.labels) putLabel(metadata, key, value);
  });
}

async function readExpectedMetadata(session: Session, id: string): Promise<Metadata> {
  const client = await session.client(PowerShelfService);
  const { expectedPowerShelves } = await client.listExpectedPowerShelves(
    { powerShelfId: id },
    { signal: session.signal },
  );
  const [found] = expectedPowerShelves;
  if (!found) {
    throw new CliError(
      EXIT.notFound,
      `no expected power shelf is linked to power shelf ${id}`,
      "`millwright expected-power-shelf list` shows the links",
    );
  }
  const forge = await session.client(Forge);
  const entry = await forge.getExpectedPowerShelf(
    { bmcMacAddress: found.bmcMac, expectedPowerShelfId: { value: found.id } },
    { signal: session.signal },
  );
  return entry.metadata ?? create(MetadataSchema);
}
