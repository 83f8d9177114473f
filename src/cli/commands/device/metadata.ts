import { type Metadata, MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import { CliError, EXIT, isConnectError, UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { printDone, printOne } from "../../terminal/printing.ts";

export interface Versioned {
  readonly metadata: Metadata;
  readonly version: string;
}

/** Devices of one kind, as their names, descriptions and labels are read and written. */
export interface DescribedKind {
  /** As people call one: power shelf. */
  readonly noun: string;
  /** Lists all devices of the kind. */
  readonly listCommand: string;
  /** The id of the device that people mean by an id or a name. */
  readonly resolve: (session: Session, idOrName: string) => Promise<string>;
  /** Undefined when there is no such device. */
  readonly read: (session: Session, id: string) => Promise<Versioned | undefined>;
  readonly update: (
    session: Session,
    id: string,
    change: { readonly ifVersionMatch: string; readonly metadata: Metadata },
  ) => Promise<unknown>;
}

export interface SetOptions {
  readonly name?: string;
  readonly description?: string;
  readonly ifVersionMatch?: string;
}

async function readMetadata(session: Session, kind: DescribedKind, id: string): Promise<Versioned> {
  const found = await kind.read(session, id);
  if (found) return found;
  throw new CliError(EXIT.notFound, `${kind.noun} ${id} does not exist`, `\`${kind.listCommand}\` shows all`);
}

export async function showMetadata(session: Session, kind: DescribedKind, idOrName: string): Promise<undefined> {
  const id = await kind.resolve(session, idOrName);
  const { metadata, version } = await readMetadata(session, kind, id);
  const labels = metadata.labels.map(({ key, value }) => (value ? `${key}=${value}` : key)).join(", ");
  const json = jsonOf(MetadataSchema, metadata);
  const noun = `${kind.noun.slice(0, 1).toUpperCase()}${kind.noun.slice(1)}`;
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
      [noun, id, "bold"],
      ["Name", metadata.name],
      ["Description", metadata.description || "none"],
      ["Labels", labels || "none"],
      ["Version", version],
    ],
  });
}

/** Others may write between our reading and our writing; the version match notices, and we take what they wrote into account. */
const ATTEMPTS = 5;

export async function changeMetadata(
  session: Session,
  kind: DescribedKind,
  id: string,
  change: (metadata: Metadata) => void,
  ifVersion?: string,
): Promise<undefined> {
  const { Code } = await import("@connectrpc/connect");
  for (let attempt = 1; ; attempt++) {
    const { metadata, version } = await readMetadata(session, kind, id);
    change(metadata);
    try {
      await kind.update(session, id, { ifVersionMatch: ifVersion ?? version, metadata });
      break;
    } catch (error) {
      const isOvertaken =
        isConnectError(error) && (error.code === Code.FailedPrecondition || error.code === Code.Aborted);
      if (!isOvertaken || ifVersion !== undefined || attempt === ATTEMPTS) throw error;
    }
  }
  await printDone(session, `Metadata of ${kind.noun} ${id} updated.`, { id });
}

export async function setMetadata(
  session: Session,
  kind: DescribedKind,
  idOrName: string,
  options: SetOptions,
): Promise<undefined> {
  if (options.name === undefined && options.description === undefined)
    throw new UsageError("give --name, --description or both");
  const set = (metadata: Metadata) => {
    metadata.name = options.name ?? metadata.name;
    metadata.description = options.description ?? metadata.description;
  };
  return changeMetadata(session, kind, await kind.resolve(session, idOrName), set, options.ifVersionMatch);
}

export async function addLabel(
  session: Session,
  kind: DescribedKind,
  idOrName: string,
  { key, value }: { readonly key: string; readonly value?: string },
): Promise<undefined> {
  const id = await kind.resolve(session, idOrName);
  return changeMetadata(session, kind, id, (metadata) => putLabel(metadata, key, value));
}

export async function removeLabels(
  session: Session,
  kind: DescribedKind,
  idOrName: string,
  { keys }: { readonly keys: readonly string[] },
): Promise<undefined> {
  const id = await kind.resolve(session, idOrName);
  return changeMetadata(session, kind, id, (metadata) => {
    const missing = keys.filter((key) => metadata.labels.every((label) => label.key !== key));
    if (missing.length > 0) throw new CliError(EXIT.notFound, `${kind.noun} ${id} has no label ${missing.join(", ")}`);
    metadata.labels = metadata.labels.filter((label) => !keys.includes(label.key));
  });
}

export function putLabel(metadata: Metadata, key: string, value: string | undefined): void {
  const label = { $typeName: "forge.Label" as const, key, ...(value === undefined ? {} : { value }) };
  const at = metadata.labels.findIndex((each) => each.key === key);
  if (at === -1) metadata.labels.push(label);
  else metadata.labels[at] = label;
}
