import { create } from "@bufbuild/protobuf";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { type Metadata, MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import { PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { CliError, EXIT, isConnectError, UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { printDone, printOne } from "../../terminal/printing.ts";
import { resolveShelf } from "./names.ts";

interface Versioned {
  readonly metadata: Metadata;
  readonly version: string;
}

async function readMetadata(session: Session, id: string): Promise<Versioned> {
  const forge = await session.client(Forge);
  const { powerShelves } = await forge.findPowerShelves({ powerShelfId: { id } }, { signal: session.signal });
  const shelf = powerShelves[0];
  if (!shelf)
    throw new CliError(
      EXIT.notFound,
      `power shelf ${id} does not exist`,
      "`millwright power-shelf list --deleted include` shows all",
    );
  return { metadata: shelf.metadata ?? create(MetadataSchema), version: shelf.version };
}

export async function showMetadata(session: Session, id: string): Promise<undefined> {
  const { metadata, version } = await readMetadata(session, id);
  const labels = metadata.labels.map(({ key, value }) => (value ? `${key}=${value}` : key)).join(", ");
  const json = jsonOf(MetadataSchema, metadata);
  await printOne(session, {
    item: metadata,
    columns: [
      { title: "ID", cell: () => id },
      { title: "NAME", cell: () => metadata.name },
      { title: "DESCRIPTION", cell: () => metadata.description },
      { title: "LABELS", cell: () => labels },
      { title: "VERSION", cell: () => version },
    ],
    json: () => (typeof json === "object" && json !== null && !Array.isArray(json) ? { id, version, ...json } : json),
    details: [
      ["Power shelf", id, "bold"],
      ["Name", metadata.name],
      ["Description", metadata.description || "none"],
      ["Labels", labels || "none"],
      ["Version", version],
    ],
  });
}

/** Others may write between our reading and our writing; the version match notices, and we take what they wrote into account. */
const ATTEMPTS = 5;

async function changeMetadata(
  session: Session,
  id: string,
  change: (metadata: Metadata) => void,
  ifVersion?: string,
): Promise<undefined> {
  const forge = await session.client(Forge);
  const { Code } = await import("@connectrpc/connect");
  for (let attempt = 1; ; attempt++) {
    const { metadata, version } = await readMetadata(session, id);
    change(metadata);
    try {
      await forge.updatePowerShelfMetadata(
        { powerShelfId: { id }, ifVersionMatch: ifVersion ?? version, metadata },
        { signal: session.signal },
      );
      break;
    } catch (error) {
      const isOvertaken =
        isConnectError(error) && (error.code === Code.FailedPrecondition || error.code === Code.Aborted);
      if (!isOvertaken || ifVersion !== undefined || attempt === ATTEMPTS) throw error;
    }
  }
  await printDone(session, `Metadata of power shelf ${id} updated.`, { id });
}

export interface SetOptions {
  readonly name?: string;
  readonly description?: string;
  readonly ifVersionMatch?: string;
}

export async function setMetadata(session: Session, id: string, options: SetOptions): Promise<undefined> {
  if (options.name === undefined && options.description === undefined)
    throw new UsageError("give --name, --description or both");
  return changeMetadata(
    session,
    await resolveShelf(session, id),
    (metadata) => {
      metadata.name = options.name ?? metadata.name;
      metadata.description = options.description ?? metadata.description;
    },
    options.ifVersionMatch,
  );
}

export async function addLabel(
  session: Session,
  id: string,
  { key, value }: { readonly key: string; readonly value?: string },
): Promise<undefined> {
  return changeMetadata(session, id, (metadata) => putLabel(metadata, key, value));
}

export async function removeLabels(
  session: Session,
  id: string,
  { keys }: { readonly keys: readonly string[] },
): Promise<undefined> {
  return changeMetadata(session, id, (metadata) => {
    const missing = keys.filter((key) => metadata.labels.every((label) => label.key !== key));
    if (missing.length > 0) throw new CliError(EXIT.notFound, `power shelf ${id} has no label ${missing.join(", ")}`);
    metadata.labels = metadata.labels.filter((label) => !keys.includes(label.key));
  });
}

function putLabel(metadata: Metadata, key: string, value: string | undefined): void {
  const label = { $typeName: "forge.Label" as const, key, ...(value === undefined ? {} : { value }) };
  const at = metadata.labels.findIndex((each) => each.key === key);
  if (at === -1) metadata.labels.push(label);
  else metadata.labels[at] = label;
}

/** Takes over what the expected inventory says: what it leaves empty is kept, unless all is to be replaced. */
export async function metadataFromExpected(
  session: Session,
  id: string,
  { replaceAll }: { readonly replaceAll?: boolean },
): Promise<undefined> {
  const expected = await readExpectedMetadata(session, id);
  return changeMetadata(session, id, (metadata) => {
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
