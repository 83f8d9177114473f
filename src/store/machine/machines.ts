import { POWER_STATES } from "../../capabilities/power-control.ts";
import { AppError, messageOf } from "../../kernel/errors.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { isJsonObject } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { CONDITION_TYPES, type Condition, type Conditions } from "../../lifecycles/machine/conditions.ts";
import { parseEndpoint, parseMachineAddress, SSH_PORT } from "../../lifecycles/machine/endpoint.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type {
  BmcProtocol,
  JumpHost,
  Machine,
  MachineBmc,
  MachineFacts,
  MachineSpec,
  SshEndpoint,
} from "../../lifecycles/machine/machine.ts";
import { machineTarget } from "../../runs/targets/machine.ts";
import { deviceTraits } from "../device/device.ts";
import type { Claim } from "../lifecycle/claims/claims.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";
import {
  isFlag,
  isText,
  isTime,
  listOf,
  mapOf,
  oneOf,
  orNull,
  REQUIRED,
  readerOf,
  shapeOf,
} from "../postgres/stored-json.ts";
import { findMachinesInUse } from "../rack/assigned.ts";
import { machinePlace } from "./machine-place.ts";

/** A machine with what only people need. */
export interface MachineRecord extends Machine {
  readonly createdAt: Date;
  /** The last run that ended. */
  readonly lastRunId: string | null;
  /** What its active run waits for. */
  readonly runWaitsFor: string | null;
  /** Who works on it. */
  readonly claim: Claim | null;
  /** As they were given, so that what is read can be handed in again. */
  readonly given: GivenEndpoints;
}

export interface GivenEndpoints {
  readonly ssh: string;
  readonly sshHostKey: string | null;
  readonly jumpHosts: readonly GivenJumpHost[];
  readonly bmc: string;
  readonly bmcProtocol: BmcProtocol | null;
  readonly bmcTrust: MachineBmc["trust"];
}

/** A type and no interface, so that it is JSON to the compiler. */
export type GivenJumpHost = {
  readonly endpoint: string;
  readonly host_key: string;
  readonly username: string | null;
};

import { machineAttention } from "./machine-attention.ts";

const text = [orNull(isText), null] as const;
const parseFacts = readerOf<MachineFacts>({
  serial: text,
  systemUuid: text,
  macs: [orNull(listOf(isText)), null],
  firmware: [orNull(mapOf(isText)), null],
  vendor: text,
  model: text,
  bmcFirmware: text,
  certificateFingerprint: text,
  sshHostKey: text,
  sshHostKeySeen: text,
  sshMoved: [orNull(shapeOf({ from: isText, to: isText })), null],
  powerState: [orNull(oneOf(POWER_STATES)), null],
  bootId: text,
  observedAt: text,
  cordoned: [orNull(shapeOf({ cluster: isText, node: isText })), null],
  drainScope: [orNull(shapeOf({ barePods: isFlag, localData: isFlag })), null],
  joinedCluster: text,
  leftCluster: text,
  locatorLit: [isFlag, false],
  offOnPurpose: [orNull(shapeOf({ run: isText })), null],
  residue: [listOf(isText), []],
  residueRecords: [listOf(isJsonObject), []],
});

interface StoredCondition extends Omit<Condition, "lastTransition" | "cause"> {
  readonly last_transition: string;
}
const areConditions = listOf(
  shapeOf<StoredCondition>({
    type: oneOf(CONDITION_TYPES),
    status: isFlag,
    reason: isText,
    message: isText,
    last_transition: isTime,
  }),
);

function parseConditions(stored: unknown): Condition[] {
  if (!areConditions(stored)) throw new TypeError(`no conditions: ${JSON.stringify(stored)}`);
  return stored.map((condition) => {
    const { type, status, reason, message, last_transition } = condition;
    const cause = "cause" in condition ? parseCause(condition.cause) : null;
    return { type, status, reason, message, lastTransition: new Date(last_transition), ...(cause && { cause }) };
  });
}

const parseJumpHost = readerOf<GivenJumpHost>({
  endpoint: [isText, REQUIRED],
  host_key: [isText, REQUIRED],
  username: [orNull(isText), null],
});

/** As the column holds them. */
export const conditionsJson = (conditions: Conditions) =>
  conditions.map(({ lastTransition, ...rest }) => ({ ...rest, last_transition: lastTransition.toISOString() }));

interface MachineRow extends StateColumns {
  labels: Record<string, string>;
  provider: string;
  serial: string | null;
  macs: string[];
  rack: string | null;
  slot: string | null;
  location: string | null;
  customer_id: string | null;
  target_cluster: string | null;
  ssh_endpoint: string | null;
  ssh_host_key: string | null;
  jump_hosts: readonly GivenJumpHost[];
  bmc_endpoint: string | null;
  bmc_protocol: BmcProtocol | null;
  bmc_trust: MachineBmc["trust"];
  conditions: unknown;
  active_run_id: string | null;
  facts: unknown;
}

const SPEC_COLUMNS = [
  "labels",
  "provider",
  "serial",
  "macs",
  "rack",
  "slot",
  "location",
  "customer_id",
  "target_cluster",
  "ssh_endpoint",
  "ssh_host_key",
  "jump_hosts",
  "bmc_endpoint",
  "bmc_protocol",
  "bmc_trust",
] as const;
const COLUMNS = `${STATE_COLUMNS}, ${SPEC_COLUMNS.map((column) => `t.${column}`).join(", ")}, t.conditions,
  t.active_run_id`;

/** What the owner says about a machine, as its row has it. */
export type SpecRow = Pick<MachineRow, (typeof SPEC_COLUMNS)[number]>;

const jumpHostOf = ({ endpoint, host_key, username }: GivenJumpHost): JumpHost => {
  const { address, port } = parseEndpoint(endpoint, "jump_hosts.endpoint");
  return { address, port: port ?? SSH_PORT, hostKey: host_key, username };
};

/** How its system is reached, as its owner says. */
export function sshOf(row: Pick<SpecRow, "ssh_endpoint" | "ssh_host_key" | "jump_hosts">): SshEndpoint | null {
  if (row.ssh_endpoint === null) return null;
  const { address, port } = parseEndpoint(row.ssh_endpoint, "ssh_endpoint");
  const jumpHosts = row.jump_hosts.map(parseJumpHost).map(jumpHostOf);
  return { address, port: port ?? SSH_PORT, hostKey: row.ssh_host_key, jumpHosts };
}

/** The columns of a spec, in the words of the domain. */
function specOf(row: SpecRow): MachineSpec {
  return {
    provider: row.provider,
    serial: row.serial,
    macs: row.macs,
    rack: row.rack,
    slot: row.slot,
    location: row.location,
    customerId: row.customer_id,
    targetCluster: row.target_cluster,
    ssh: sshOf(row),
    bmc:
      row.bmc_endpoint === null
        ? null
        : {
            ...parseMachineAddress(row.provider, row.bmc_endpoint, "bmc_endpoint"),
            protocol: row.bmc_protocol,
            trust: row.bmc_trust,
          },
  };
}

function parseMachine(row: MachineRow): Machine {
  return {
    ...parseStateColumns(row),
    id: parseMachineId(row.id, "id"),
    labels: row.labels,
    spec: specOf(row),
    facts: parseFacts(row.facts),
    conditions: parseConditions(row.conditions),
    activeRunId: row.active_run_id,
  };
}

export const machineStore: ThingStore<Machine> = {
  lifecycle: machineLifecycle,
  table: "machines",
  place: machinePlace,
  requests: {},
  takesRuns: machineTarget,
  replacedFacts: { certificateFingerprint: "certificate_replaced" },
  // Runs work on machines; by itself a machine only sees to its node, and to its locator.
  restsIdle: ({ state, facts }) => state.drain !== true && facts.cordoned === null && !facts.locatorLit,
  // Machines are retired, never deleted: no trait for it.
  device: deviceTraits<MachineRecord>({
    noun: "machine",
    command: "machine",
    parseId: parseMachineId,
    list: (db, ids) => listMachines(db, { ids }),
    refuseReports({ id, state }) {
      if (state.name === "RETIRED")
        throw new AppError("failed_precondition", `machine ${id} is RETIRED: nobody watches over it any more`);
    },
  }),
  inUse: findMachinesInUse,
  attention: machineAttention,
  async load(db, ids) {
    const rows = await db.query<MachineRow>({
      name: "machines.load",
      text: `select ${COLUMNS} from machines t where t.id = any($1)`,
      values: [ids],
    });
    return parseRows(rows, parseMachine);
  },
};

export interface MachineQuery {
  readonly ids?: readonly string[];
}

export interface RecordRow extends MachineRow {
  created_at: Date;
  last_run_id: string | null;
  run_waits_for: string | null;
  holder_kind: string | null;
  holder_id: string | null;
  claim_reason: string | null;
  requested_at: Date | null;
  granted_at: Date | null;
}

/** What a record is read from, for lists. */
export const RECORD_COLUMNS = `${COLUMNS}, t.created_at, t.last_run_id,
            case when r.outcome ->> 'type' = 'waiting' then r.outcome ->> 'reason' end as run_waits_for,
            coalesce(c.behalf_kind, c.holder_kind) as holder_kind, coalesce(c.behalf_id, c.holder_id) as holder_id,
            c.reason as claim_reason, c.requested_at, c.granted_at`;
export const RECORD_FROM = `machines t left join runs r on r.id = t.active_run_id
            left join claims c on c.thing_kind = 'machine' and c.thing_id = t.id and c.granted_at is not null`;

/** Machines in the order of their ids: those that are named, or all. */
export async function listMachines(db: Queryable, { ids }: MachineQuery = {}): Promise<MachineRecord[]> {
  const where = ids === undefined ? "" : "where t.id = any($1)";
  const rows = await db.query<RecordRow>({
    text: `select ${RECORD_COLUMNS} from ${RECORD_FROM} ${where} order by t.id`,
    values: ids === undefined ? [] : [ids],
    ...(ids !== undefined && { hot: true }),
  });
  return rows.map(parseRecord);
}

/** One row that does not parse must not hide the others from a list: it is shown as far as it can be read. */
export function parseRecord(row: RecordRow): MachineRecord {
  try {
    return parseReadable(row);
  } catch (error) {
    const reason = `its row cannot be read: ${messageOf(error)}`;
    const rest = {
      ...row,
      facts: {},
      conditions: [],
      jump_hosts: [],
      ssh_endpoint: null,
      bmc_endpoint: null,
    };
    return { ...parseReadable(rest), outcome: { type: "failing", reason, cause: { code: "quarantined" } } };
  }
}

function claimOf(row: RecordRow): Claim | null {
  const { holder_kind: kind, holder_id: id, requested_at: requestedAt } = row;
  if (kind === null || id === null || requestedAt === null) return null;
  return {
    thing: { kind: "machine", id: row.id },
    holder: { kind, id },
    reason: row.claim_reason ?? "",
    requestedAt,
    grantedAt: row.granted_at,
  };
}

function parseReadable(row: RecordRow): MachineRecord {
  return {
    ...parseMachine(row),
    createdAt: row.created_at,
    lastRunId: row.last_run_id,
    runWaitsFor: row.run_waits_for,
    claim: claimOf(row),
    given: {
      ssh: row.ssh_endpoint ?? "",
      sshHostKey: row.ssh_host_key,
      jumpHosts: row.jump_hosts.map(parseJumpHost),
      bmc: row.bmc_endpoint ?? "",
      bmcProtocol: row.bmc_protocol,
      bmcTrust: row.bmc_trust,
    },
  };
}
