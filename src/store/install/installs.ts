import { z } from "zod";
import { parseMachineId } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import {
  type Architecture,
  type BootMode,
  type Install,
  type InstallFacts,
  STEP_STATES,
} from "../../lifecycles/install/install.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { runLifecycle } from "../../runs/model/lifecycle.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { type Loaded, parseRows, type ThingStore } from "../lifecycle/things.ts";
import { placeOfItsMachine } from "../machine/machine-place.ts";
import type { Queryable } from "../postgres/database.ts";
import { installOrders } from "./orders.ts";

const text = z.string().nullable().default(null);
const date = z.coerce.date().nullable().default(null);
const factsSchema = z.object({
  installAttempts: z.number().default(0),
  lastInstallError: text,
  progress: z.number().nullable().default(null),
  attemptStartedAt: date,
  attemptFailed: z.boolean().default(false),
  hostname: text,
  ipAddress: text,
  vendor: text,
  model: text,
  serialNumber: text,
  systemUuid: text,
  lastSeenAt: date,
  orderedBy: text,
  orderId: text,
  tokenShown: z.boolean().default(false),
  erasedDisks: z
    .array(z.object({ disk: z.string(), serial: z.string().nullable(), method: z.string(), verified: z.boolean() }))
    .default([]),
  steps: z
    .array(
      z.object({
        sequence: z.number(),
        name: z.string(),
        type: z.string(),
        state: z.enum(STEP_STATES),
        attempts: z.number(),
        message: z.string().nullable(),
        required: z.boolean(),
      }),
    )
    .default([]),
});

const bootSchema = z.object({
  id: z.string(),
  /** What had armed it; null: nothing, so that it proves nothing. */
  armedBy: text,
  at: z.string(),
  /** Where its script was asked for first. */
  address: text,
  /** What its firmware said of the hardware. */
  identity: z.string().default(""),
  /** Other addresses that asked for its script. */
  others: z.array(z.string()).default([]),
  /** Since when one of these and the first may not be the machine. */
  contestedAt: text,
  /** What was reported with its tokens while they proved nothing, and with the token of which address. */
  said: z.array(z.object({ verb: z.string(), from: text })).default([]),
});
/** A boot that was given a script with a token. */
export type Boot = Readonly<z.infer<typeof bootSchema>>;

/** Of a patch what is in it, and not what stands for absent fields. */
const parseFactsPatch = (patch: JsonObject): Partial<InstallFacts> =>
  Object.fromEntries(Object.entries(factsSchema.parse(patch)).filter(([name]) => name in patch));

export interface InstallRow extends StateColumns {
  mac: string;
  arch: Architecture;
  boot_mode: BootMode;
  group_id: string | null;
  workflow_id: string | null;
  tags: string[];
  created_at: Date;
  updated_at: Date;
  report_token_hash: string | null;
  order_stamp: string | null;
  armed_at: Date | null;
  armed_by: string | null;
  boot: unknown;
  effective_workflow_id: string | null;
  promotes_when_complete: boolean;
  promotes_on_first_boot: boolean;
  facts: unknown;
}

/** An install with what its boot scripts and its readers need beside the table. */
export interface InstallRecord extends Install {
  /** Its own workflow, or the one that its groups give it. */
  readonly effectiveWorkflowId: string | null;
  readonly reportTokenHash: string | null;
  /** What the system that a run has installed is to show; of no use once the run is over. */
  readonly orderStamp: string | null;
  /** Since when the next boot is expected; null: it is not. */
  readonly armedAt: Date | null;
  readonly armedBy: string | null;
  /** The last one that was given a script with a token; null: none, or one of an earlier version. */
  readonly boot: Boot | null;
  readonly updatedAt: Date;
}

export const INSTALL_COLUMNS = `${STATE_COLUMNS}, t.mac, t.arch, t.boot_mode, t.group_id, t.workflow_id, t.tags, t.created_at, t.updated_at,
  t.report_token_hash, t.order_stamp, t.armed_at, t.armed_by, t.boot,
  coalesce(t.workflow_id, g.effective_workflow_id) as effective_workflow_id,
  coalesce(w.next_state = 'active', false) as promotes_when_complete,
  coalesce(g.effective_auto_promote, false) as promotes_on_first_boot`;
export const INSTALL_FROM = `installs t
  left join device_groups g on g.id = t.group_id
  left join install_workflows w on w.id = coalesce(t.workflow_id, g.effective_workflow_id)`;

export function parseInstall(row: InstallRow): InstallRecord {
  const boot = row.boot === null ? null : bootSchema.parse(row.boot);
  return {
    ...parseStateColumns(row),
    id: parseMachineId(row.id, "id"),
    mac: row.mac,
    arch: row.arch,
    bootMode: row.boot_mode,
    groupId: row.group_id,
    workflowId: row.workflow_id,
    effectiveWorkflowId: row.effective_workflow_id,
    tags: row.tags,
    reportTokenHash: row.report_token_hash,
    orderStamp: row.order_stamp,
    armedAt: row.armed_at,
    armedBy: row.armed_by,
    boot,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    isCompleteInDoubt: boot?.said.some(({ verb }) => verb === "complete") ?? false,
    promotesWhenComplete: row.promotes_when_complete,
    promotesOnFirstBoot: row.promotes_on_first_boot,
    facts: factsSchema.parse(row.facts) satisfies InstallFacts,
  };
}

/** Installs by their ids, with all that scripts and readers need. */
export async function loadInstalls(db: Queryable, ids: readonly string[]): Promise<Loaded<InstallRecord>> {
  const rows = await db.query<InstallRow>({
    name: "installs.load",
    text: `select ${INSTALL_COLUMNS} from ${INSTALL_FROM} where t.id = any($1)`,
    values: [ids],
  });
  return parseRows(rows, parseInstall);
}

export const installStore: ThingStore<Install> = {
  lifecycle: installLifecycle,
  table: "installs",
  place: placeOfItsMachine("installs"),
  requests: {},
  // Two claimed one boot, and people have to settle it.
  attention: {
    applies: `(t.boot ->> 'contestedAt' is not null and t.state in ('pending', 'installing', 'deprovisioning'))`,
    filter: "state IN (pending, installing, deprovisioning)",
    since: "(t.boot ->> 'contestedAt')::timestamptz",
    cause: "''",
    message: "'two addresses asked for the script of one boot'",
  },
  // A machine that boots installs itself.
  actsAtRest: ["pending"],
  claims: ({ id, facts }) => ({
    targets: [{ kind: "machine", id }],
    holder: facts.orderedBy === null ? { kind: "install", id } : { kind: "run", id: facts.orderedBy },
  }),
  related: {
    // The machine's own passes depend on nothing of its install: who asks for the machine reads both.
    machine: { of: ({ id }) => ({ kind: "machine", id }) },
    orderedBy: {
      of: ({ facts }) => (facts.orderedBy === null ? null : { kind: runLifecycle.kind, id: facts.orderedBy }),
      // Of how far it is a run learns when it asks.
      wakes: { butFor: ["progress"] },
    },
    replacement: {
      of: ({ state }) =>
        state.replacement === undefined ? null : { kind: installLifecycle.kind, id: state.replacement },
      loadsState: true,
      awaits: {
        kind: installLifecycle.kind,
        // It has proved itself, or never will.
        states: ["active", "retired"],
        waiting: async (db, others) => {
          const replaced = await listReplaced(
            db,
            others.map(({ id }) => id),
          );
          return replaced.map(({ id }) => id);
        },
      },
    },
  },
  load: loadInstalls,
  orders: installOrders,
  factsWith: ({ facts }, patch) => ({ ...facts, ...parseFactsPatch(patch) }),
};

/** The nodes whose place these are taking. */
export async function listReplaced(
  db: Queryable,
  replacements: readonly string[],
): Promise<readonly { readonly id: string; readonly replacement: string }[]> {
  return db.query<{ id: string; replacement: string }>(
    `select id, state_data ->> 'replacement' as replacement from installs
      where state = 'migrating' and state_data ->> 'replacement' = any($1)`,
    [replacements],
  );
}
