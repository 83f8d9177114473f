import { messageOf } from "../../kernel/errors.ts";
import { rackFirmwareLifecycle } from "../../lifecycles/rack-firmware/lifecycle.ts";
import {
  ACTIVATIONS,
  ANY_HARDWARE,
  type CataloguedFirmware,
  FILE_SIGNS,
  FIRMWARE_CLASSES,
  FIRMWARE_DEVICES,
  type FirmwareComponent,
  type FirmwareFile,
  type RackFirmware,
} from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { isNumber, isText, listOf, mapOf, oneOf, orNull, readerOf, shapeOf } from "../postgres/stored-json.ts";

/** One component with where its file comes from, as it is kept. */
export type KeptComponent = Omit<FirmwareComponent, "bytes"> & { readonly file: Omit<FirmwareFile, "digest"> };

interface FirmwareRow extends StateColumns {
  facts: unknown;
  config: string;
  components: unknown;
  hardware_type: string;
  is_default: boolean;
  created_at: Date;
  updated_at: Date;
}

const areComponents = listOf(
  shapeOf<KeptComponent>({
    device: oneOf(FIRMWARE_DEVICES),
    component: isText,
    class: oneOf(FIRMWARE_CLASSES),
    version: isText,
    digest: isText,
    targets: listOf(isText),
    activation: oneOf(ACTIVATIONS),
    order: isNumber,
    file: shapeOf<KeptComponent["file"]>({
      name: isText,
      url: isText,
      bytes: orNull(isNumber),
      sign: oneOf(FILE_SIGNS),
    }),
  }),
);
const readFacts = readerOf<CataloguedFirmware["facts"]>({ sizes: [mapOf(isNumber), {}] });

/** What racks are planned with, for queries that load records beside other things: as one JSON object, of table `alias`. */
export const rackFirmwareJson = (alias: string): string =>
  `jsonb_build_object('id', ${alias}.id, 'hardware_type', ${alias}.hardware_type, 'state', ${alias}.state,
     'is_default', ${alias}.is_default, 'components', ${alias}.components, 'facts', ${alias}.facts)`;

interface FirmwareJson {
  readonly id: string;
  readonly hardware_type: string;
  readonly state: string;
  readonly is_default: boolean;
  readonly components: unknown;
  readonly facts: unknown;
}

/** The inverse of `rackFirmwareJson`. A record that cannot be read says so itself: whatever names it can be read all the same. */
export function parseRackFirmware(json: FirmwareJson): RackFirmware {
  try {
    return parseReadable(json);
  } catch (error) {
    const { id, hardware_type: hardwareType, is_default: isDefault } = json;
    return { id, hardwareType, isDefault, available: false, components: [], unreadable: messageOf(error) };
  }
}

function parseReadable(json: FirmwareJson): RackFirmware {
  const { sizes } = readFacts(json.facts);
  return {
    id: json.id,
    hardwareType: json.hardware_type,
    available: json.state === ("available" satisfies keyof typeof rackFirmwareLifecycle.states),
    isDefault: json.is_default,
    components: readComponents(json.components).map(({ file: _, ...component }) => ({
      ...component,
      bytes: sizes[component.digest] ?? 0,
    })),
  };
}

function readComponents(stored: unknown): readonly KeptComponent[] {
  if (!areComponents(stored)) throw new TypeError("its components are not what this server knows");
  return stored;
}

function parseFirmware(row: FirmwareRow): CataloguedFirmware {
  return {
    ...parseStateColumns(row),
    ...parseReadable(row),
    config: row.config,
    files: readComponents(row.components).map(({ digest, file }) => ({ digest, ...file })),
    facts: readFacts(row.facts),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** One that cannot be read must not hide the others from a list, and can be deleted. */
function parseRecord(row: FirmwareRow): CataloguedFirmware {
  const firmware = parseRackFirmware(row);
  return firmware.unreadable === undefined
    ? parseFirmware(row)
    : { ...parseFirmware({ ...row, components: [], facts: {} }), ...firmware };
}

/** Each component of a record `f`. What is no list has none. */
const EACH_COMPONENT = `jsonb_array_elements(case jsonb_typeof(f.components) when 'array' then f.components else '[]' end)`;

const COLUMNS = `${STATE_COLUMNS}, t.config, t.components, t.hardware_type, t.is_default, t.created_at, t.updated_at`;

export const rackFirmwareStore: ThingStore<CataloguedFirmware> = {
  lifecycle: rackFirmwareLifecycle,
  table: "rack_firmware",
  requests: {},
  restsIdle: ({ state }) => state.name !== "downloading",
  async load(db, ids) {
    const text = `select ${COLUMNS} from rack_firmware t where t.id = any($1)`;
    return parseRows(await db.query<FirmwareRow>({ name: "rack_firmware.load", text, values: [ids] }), parseFirmware);
  },
  // Nobody waits for the files of a record that was deleted.
  async overtaken(db, records) {
    const text =
      "select u.id from unnest($1::text[]) as u(id) where not exists (select from rack_firmware f where f.id = u.id)";
    return (await db.query<{ id: string }>(text, [records.map(({ id }) => id)])).map(({ id }) => id);
  },
};

export interface FirmwareFilter {
  readonly ids?: readonly string[];
  readonly hardwareType?: string;
  readonly onlyAvailable?: boolean;
}

/** The newest first. */
export async function listRackFirmware(db: Queryable, filter: FirmwareFilter = {}): Promise<CataloguedFirmware[]> {
  const rows = await db.query<FirmwareRow>(
    `select ${COLUMNS} from rack_firmware t
      where ($1::text[] is null or t.id = any($1)) and ($2::text is null or t.hardware_type = $2)
        and (not $3 or t.state = 'available')
      order by t.created_at desc, t.id`,
    [filter.ids ?? null, filter.hardwareType ?? null, filter.onlyAvailable ?? false],
  );
  return rows.map(parseRecord).filter(({ available }) => available || !filter.onlyAvailable);
}

/** The file names of a digest, for addresses under which devices fetch it. */
export async function findArtifactName(db: Queryable, digest: string): Promise<string | undefined> {
  const [row] = await db.query<{ name: string }>(
    `select c -> 'file' ->> 'name' as name from rack_firmware f, ${EACH_COMPONENT} c
      where f.components @> $1::jsonb and c ->> 'digest' = $2 order by f.created_at desc limit 1`,
    [JSON.stringify([{ digest }]), digest],
  );
  return row?.name;
}

/** Where the file of a digest comes from, and for which record; undefined where no available record names it. */
export async function findArtifactSource(
  db: Queryable,
  digest: string,
): Promise<(Pick<FirmwareFile, "url" | "bytes" | "sign"> & { readonly id: string }) | undefined> {
  const [row] = await db.query<Pick<FirmwareFile, "url" | "bytes" | "sign"> & { id: string }>(
    `select f.id, c -> 'file' ->> 'url' as url, (c -> 'file' ->> 'bytes')::float8 as bytes, c -> 'file' ->> 'sign' as sign
       from rack_firmware f, jsonb_array_elements(f.components) c
      where f.components @> $1::jsonb and c ->> 'digest' = $2 and f.state = 'available' order by f.created_at desc limit 1`,
    [JSON.stringify([{ digest }]), digest],
  );
  return row;
}

/** Every digest that some record names. */
export async function listArtifactDigests(db: Queryable): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ digest: string }>(
    `select distinct c ->> 'digest' as digest from rack_firmware f, ${EACH_COMPONENT} c`,
  );
  return new Set(rows.map(({ digest }) => digest));
}

/** The files of available records. */
export async function listAvailableDigests(db: Queryable): Promise<readonly { id: string; digest: string }[]> {
  return db.query<{ id: string; digest: string }>({
    name: "rack_firmware.available_digests",
    text: `select distinct f.id, c ->> 'digest' as digest from rack_firmware f, ${EACH_COMPONENT} c
            where f.state = 'available' order by f.id`,
    values: [],
  });
}

/** The default of a hardware type; undefined where it has none. Who changes it holds the lock of the type's default. */
export async function findDefault(db: Queryable, hardwareType: string): Promise<string | undefined> {
  const text = "select id from rack_firmware where hardware_type = $1 and is_default";
  return (await db.query<{ id: string }>(text, [hardwareType]))[0]?.id;
}

/** The id of what racks of a hardware type get where nobody names a version: the type's own default comes before one that suits all. */
export const defaultFirmwareSql = (hardwareType: string): string =>
  `(select d.id from rack_firmware d where d.is_default and d.hardware_type in (${hardwareType}, '${ANY_HARDWARE}')
     order by d.hardware_type = ${hardwareType} desc limit 1)`;

/** The same for one hardware type; undefined where there is none. */
export async function findDefaultFor(db: Queryable, hardwareType: string): Promise<string | undefined> {
  const [row] = await db.query<{ id: string | null }>(`select ${defaultFirmwareSql("$1")} as id`, [hardwareType]);
  return row?.id ?? undefined;
}

/** A run that is active and works with the record. */
export async function findRunOfFirmware(tx: Transaction, id: string): Promise<string | undefined> {
  const [run] = await tx.query<{ id: string }>(
    `select id from runs where state in ('PENDING', 'RUNNING')
        and (plan @> $1::jsonb or jsonb_path_exists(plan, '$.steps[*].payload.** ? (@.firmware_id == $id)', jsonb_build_object('id', $2::text)))
      order by id limit 1`,
    [JSON.stringify({ steps: [{ payload: { firmware_id: id } }] }), id],
  );
  return run?.id;
}
