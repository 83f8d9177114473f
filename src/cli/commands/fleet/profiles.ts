import type { JsonObject } from "@bufbuild/protobuf";
import { parse as parseYaml } from "yaml";
import { type FleetProfile, FleetProfileSchema, FleetService } from "../../../../contract/millwright/v1/fleet_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";

export interface SetProfileOptions {
  readonly site: string;
  readonly policy?: readonly string[];
  readonly file?: string;
}

const PAGE_SIZE = 500;

const columns: readonly Column<FleetProfile>[] = [
  { title: "SITE", cell: ({ site }) => site },
  { title: "NAME", cell: ({ name }) => name },
  {
    title: "POLICY",
    cell: ({ policy = {} }) =>
      Object.entries(policy)
        .filter(([, value]) => value !== null)
        .map(([field, value]) => `${field}=${String(value)}`)
        .join(" "),
  },
];

export async function setProfile(session: Session, name: string, options: SetProfileOptions): Promise<undefined> {
  const { site } = options;
  const policy = { ...(await fromFile(session, options.file)), ...fromPairs(options.policy ?? []) };
  const client = await session.client(FleetService);
  await client.setProfile({ site, name, policy }, { signal: session.signal });
  await printDone(session, `Profile ${name} of site ${site} set.`, { site, name });
}

async function fromFile(session: Session, file: string | undefined): Promise<JsonObject> {
  if (file === undefined) return {};
  const text = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (text === undefined) throw new UsageError(`--file: ${file} does not exist`);
  const parsed: unknown = parsedYaml(text, file);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new UsageError(`--file: ${file} must hold fields and their values`);
  return parsed as JsonObject;
}

function parsedYaml(text: string, file: string): unknown {
  try {
    return parseYaml(text);
  } catch (error) {
    throw new UsageError(`--file: ${file} is not YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Values are read as YAML reads them: `true`, `2`, `15m`. */
function fromPairs(pairs: readonly string[]): JsonObject {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`--policy: "${pair}" must be field=value`);
      return [pair.slice(0, at), parsedYaml(pair.slice(at + 1), "--policy") as JsonObject[string]];
    }),
  );
}

export async function listProfiles(session: Session, { site = "" }: { site?: string }): Promise<undefined> {
  const client = await session.client(FleetService);
  const items = await readPages(
    (pageToken) => client.listProfiles({ site, pageSize: PAGE_SIZE, pageToken }, { signal: session.signal }),
    ({ profiles }) => profiles,
  );
  const json = (profile: FleetProfile) => jsonOf(FleetProfileSchema, profile);
  await printList(session, { items, columns, json }, "No fleet profiles.");
}

export async function removeProfile(
  session: Session,
  name: string,
  { site, yes }: ConfirmOptions & { site: string },
): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Remove profile ${name} of site ${site}?` });
  const client = await session.client(FleetService);
  await client.removeProfile({ site, name }, { signal: session.signal });
  await printDone(session, `Profile ${name} of site ${site} removed.`, { site, name });
}
