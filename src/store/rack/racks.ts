import { POWER_STATES } from "../../capabilities/power-control.ts";
import { move } from "../../kernel/effects.ts";
import { messageOf } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import { GONE, isJsonObject } from "../../kernel/lifecycle.ts";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import { expectedRackLifecycle } from "../../lifecycles/expected-rack/lifecycle.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import {
  type EndedRackRequest,
  type Rack,
  type RackAdmission,
  type RackFacts,
  type RackRequest,
  type RackShelf,
  type RackSwitch,
  TRIGGERS,
  type Tray,
  type WantedVersions,
  type WorkSet,
} from "../../lifecycles/rack/rack.ts";
import { releasesDevices } from "../../lifecycles/rack/release.ts";
import { deviceTraits, type VersionedMetadata } from "../device/device.ts";
import { deviceAttention } from "../device/device-attention.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingKey, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";
import {
  type Check,
  isFlag,
  isNumber,
  isText,
  listOf,
  oneOf,
  orNull,
  REQUIRED,
  readerOf,
  shapeOf,
} from "../postgres/stored-json.ts";
import { parseRackFirmware } from "../rack-firmware/rack-firmware.ts";
import { AWAITS_TURN, listRacksToAdmit, rackAdmission } from "./admission.ts";
import { findTraysInUse } from "./assigned.ts";
import { DEFAULT_FIRMWARE, PROFILE, REQUESTED_FIRMWARE, SHELVES, SWITCHES, TRAYS } from "./members-sql.ts";
import { parseProfile } from "./profile-json.ts";

/** A rack with what the controller does not need: its names, and what has been. */
export interface RackRecord extends Rack, VersionedMetadata {
  readonly createdAt: Date;
  readonly lastMaintenanceRequest: EndedRackRequest | null;
  readonly lastReprovisionRequest: EndedRackRequest | null;
  readonly lastError: string | null;
  readonly nextCheckAt: Date | null;
}

const orAbsent =
  <T>(check: Check<T>): Check<T | undefined> =>
  (value): value is T | undefined =>
    value === undefined || check(value);
const areVersions = listOf(shapeOf({ component: isText, version: isText, targets: listOf(isText) }));
const isFirmware = shapeOf<NonNullable<WorkSet["firmware"]>>({
  id: isText,
  wanted: shapeOf<WantedVersions>({ compute: areVersions, switch: areVersions, power_shelf: areVersions }),
});
const isAdmission = shapeOf<RackAdmission>({
  limit: oneOf(["rack.maintenance_at_once", "rack.ingestion_at_once"]),
  atOnce: isNumber,
  stopAfter: isNumber,
});
const isWorkSet = shapeOf<WorkSet>({
  machines: listOf(isText),
  switches: listOf(isText),
  shelves: listOf(isText),
  keptUnassigned: orAbsent(listOf(isText)),
  unused: orAbsent(listOf(isText)),
  leftOut: listOf(shapeOf({ id: isText, why: isText })),
  firmware: orNull(isFirmware),
  fabric: isFlag,
  isOff: isFlag,
  barsForMs: isNumber,
  trigger: orAbsent(oneOf(TRIGGERS)),
  admission: orAbsent(isAdmission),
});
const parseFacts = readerOf<RackFacts>({
  topology: [orNull(isText), null],
  workSet: [orNull(isWorkSet), null],
  hasValidated: [isFlag, false],
  failedByItself: [isFlag, false],
});
type TrayRow = Omit<Tray, "ready"> & { readonly bmcAnswers: boolean };
const parseTray = readerOf<TrayRow>({
  id: [isText, REQUIRED],
  slot: [orNull(isText), null],
  inMaas: [isFlag, false],
  bmcAnswers: [isFlag, false],
  assigned: [oneOf(["yes", "no", "unknown"]), "unknown"],
  reprovision: [orNull(isText), null],
  exhausted: [isFlag, false],
  unprovenRun: [orNull(isText), null],
});
const parseSwitch = readerOf<RackSwitch>({
  id: [isText, REQUIRED],
  state: [isText, REQUIRED],
  trayIndex: [orNull(isNumber), null],
  hasOs: [isFlag, false],
  unprovenRun: [orNull(isText), null],
});
const parseShelf = readerOf<RackShelf>({
  id: [isText, REQUIRED],
  state: [isText, REQUIRED],
  power: [orNull(oneOf(POWER_STATES)), null],
  capacityWatts: [orNull(isNumber), null],
  unprovenRun: [orNull(isText), null],
});

interface RackRow extends StateColumns {
  rack_profile_id: string | null;
  deleted_at: Date | null;
  maintenance_requested: RackRequest | null;
  reprovision_requested: RackRequest | null;
  facts: unknown;
  trays: readonly unknown[];
  switches: readonly unknown[];
  shelves: readonly unknown[];
  profile: unknown;
  default_firmware: Parameters<typeof parseRackFirmware>[0] | null;
  requested_firmware: Parameters<typeof parseRackFirmware>[0] | null;
}

const COLUMNS = `${STATE_COLUMNS}, t.rack_profile_id, t.deleted_at, t.maintenance_requested, t.reprovision_requested,
  ${TRAYS} as trays, ${SWITCHES} as switches, ${SHELVES} as shelves,
  ${PROFILE} as profile, ${DEFAULT_FIRMWARE} as default_firmware, ${REQUESTED_FIRMWARE} as requested_firmware`;

function parseRack(row: RackRow): Rack {
  return {
    ...parseStateColumns(row),
    id: row.id,
    profile: row.profile === null ? null : parseProfile(row.profile),
    profileId: row.rack_profile_id,
    trays: row.trays.map(parseTray).map(
      ({ bmcAnswers, ...tray }): Tray => ({
        ...tray,
        // A machine that a server of the version before has put on record has no such thing yet.
        ready: tray.inMaas || (bmcAnswers && (tray.reprovision === null || tray.reprovision === "ready")),
      }),
    ),
    switches: row.switches.map(parseSwitch),
    shelves: row.shelves.map(parseShelf),
    defaultFirmware: row.default_firmware && parseRackFirmware(row.default_firmware),
    requestedFirmware: row.requested_firmware && parseRackFirmware(row.requested_firmware),
    maintenanceRequest: parseRequest(row.maintenance_requested),
    reprovisionRequest: parseRequest(row.reprovision_requested),
    deletedAt: row.deleted_at,
    facts: parseFacts(row.facts),
  };
}

/** The service that records a request checks it; here only what the controller goes by must be there. */
function parseRequest<R extends RackRequest>(stored: R | null): R | null {
  if (stored === null) return null;
  if (!isJsonObject(stored) || !isJsonObject(stored.scope) || !Array.isArray(stored.activities))
    throw new TypeError("a request of a rack lacks its scope or its activities");
  return stored;
}

const rackKey = (id: string): ThingKey => ({ kind: rackLifecycle.kind, id });

/** The rack, all devices that it works on, and the trays that depend on these: all or none. */
function claims({ id, facts: { workSet } }: Rack) {
  const of = (kind: string, ids: readonly string[] = []) => ids.map((each) => ({ kind, id: each }));
  const barsFor: Duration = milliseconds(workSet?.barsForMs ?? 0);
  const targets = [
    rackKey(id),
    ...of("machine", [...new Set([...(workSet?.machines ?? []), ...(workSet?.keptUnassigned ?? [])])]),
    ...of("switch", workSet?.switches),
    ...of("power_shelf", workSet?.shelves),
  ];
  return { targets, holder: rackKey(id), unused: of("machine", workSet?.unused), barsFor };
}

const rackTraits = deviceTraits<RackRecord>({
  noun: "rack",
  command: "rack",
  parseId: parseRackId,
  list: (db, ids) => listRacks(db, { ids }),
  metadataOf: (rack) => rack,
  deletion: {
    moves: (rack) => [
      move(expectedRackLifecycle, rack.id, "rack_deleted", { ifPossible: true }),
      ...releasesDevices(rack),
    ],
  },
});

export const rackStore: ThingStore<Rack> = {
  lifecycle: rackLifecycle,
  table: "racks",
  rackSql: "t.id",
  // Its labels say nothing of the machines in it, and who acts on a rack acts on them.
  place: { table: "racks", rack: (row) => `${row}.id` },
  // Without a profile nobody wants it to become anything.
  // Nor is one late that waits for its turn.
  slaCounts: `((t.state <> 'created' or t.rack_profile_id is not null) and not ${AWAITS_TURN})`,
  requests: {
    maintenanceRequest: { column: "maintenance_requested", lastColumn: "last_maintenance_request" },
    reprovisionRequest: { column: "reprovision_requested", lastColumn: "last_reprovision_request" },
  },
  device: rackTraits,
  attention: deviceAttention,
  claims,
  inUse: findTraysInUse,
  related: {
    run: {
      of: ({ state: { run } }) => (run === undefined ? null : { kind: "run", id: run }),
      loadsState: true,
    },
    // A place is free, or a failure is mended: whoever waited longest looks again. A few more than there can be places for, since
    // one that has just begun to wait may not be seen yet.
    place: {
      of: () => null,
      awaits: {
        kind: rackLifecycle.kind,
        states: ["ready", "error", "deleting", GONE],
        waiting: (db, others) => listRacksToAdmit(db, others.length + 2),
      },
    },
  },
  admission: rackAdmission,
  async load(db, ids) {
    const rows = await db.query<RackRow>({
      name: "racks.load",
      text: `select ${COLUMNS} from racks t where t.id = any($1)`,
      values: [ids],
    });
    return parseRows(rows, parseRack);
  },
};

export interface RecordRow extends RackRow {
  name: string;
  description: string;
  labels: Record<string, string | null>;
  metadata_version: number;
  metadata_changed_at: Date;
  created_at: Date;
  last_maintenance_request: EndedRackRequest | null;
  last_reprovision_request: EndedRackRequest | null;
  last_error: string | null;
  next_check_at: Date | null;
}

export const RECORD_COLUMNS = `${COLUMNS}, t.name, t.description, t.labels, t.metadata_version, t.metadata_changed_at, t.created_at,
  t.last_maintenance_request, t.last_reprovision_request, w.last_error, nullif(w.wake_at, 'infinity') as next_check_at`;
export const RECORD_FROM = "racks t left join work w on w.kind = 'rack' and w.id = t.id";

/** Racks in the order of their ids: those that are named, or all. */
export async function listRacks(
  db: Queryable,
  { ids }: { readonly ids?: readonly string[] } = {},
): Promise<RackRecord[]> {
  const where = ids === undefined ? "" : "where t.id = any($1)";
  const rows = await db.query<RecordRow>(
    `select ${RECORD_COLUMNS} from ${RECORD_FROM} ${where} order by t.id`,
    ids === undefined ? [] : [ids],
  );
  return rows.map(parseRecord);
}

/** Racks that are not marked for deletion, in the order of their ids. With a value: the label has it; without: there is such a label. */
export async function findLiveRackIds(
  db: Queryable,
  label?: { readonly key: string; readonly value: string | undefined },
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from racks where deleted_at is null
        and ($1::text is null or (labels ? $1 and ($2::text is null or coalesce(labels ->> $1, '') = $2))) order by id`,
    [label?.key ?? null, label?.value ?? null],
  );
  return rows.map(({ id }) => id);
}

/** One row that does not parse must not hide the others from a list: it is shown as far as it can be read. */
export function parseRecord(row: RecordRow): RackRecord {
  try {
    return parseReadable(row);
  } catch (error) {
    const reason = `its row cannot be read: ${messageOf(error)}`;
    const rest = {
      ...row,
      facts: {},
      trays: [],
      switches: [],
      shelves: [],
      profile: null,
      default_firmware: null,
      requested_firmware: null,
      maintenance_requested: null,
      reprovision_requested: null,
    };
    return { ...parseReadable(rest), outcome: { type: "failing", reason, cause: { code: "quarantined" } } };
  }
}

const parseReadable = (row: RecordRow): RackRecord => ({
  ...parseRack(row),
  name: row.name,
  description: row.description,
  labels: row.labels,
  metadataVersion: row.metadata_version,
  metadataChangedAt: row.metadata_changed_at,
  createdAt: row.created_at,
  lastMaintenanceRequest: row.last_maintenance_request,
  lastReprovisionRequest: row.last_reprovision_request,
  lastError: row.last_error,
  nextCheckAt: row.next_check_at,
});
