import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import { parsePortMac } from "../../kernel/ids.ts";
import type { InstallEvent, InstallTransition } from "../../services/install/history.ts";
import {
  ARCHITECTURES,
  BOOT_MODES,
  INSTALL_STATES,
  type InstallRecord,
  STEP_STATES,
} from "../../services/install/installs.ts";
import { INSTALLATION_STATUSES, NODE_EVENTS } from "../../services/install/reports.ts";
import { printable, shortText, timestamp } from "./envelopes.ts";

/** In any common notation; lower case with colons from here on. */
export const macAddress = z.string().transform((text, context) => {
  try {
    return parsePortMac(text, "mac_address");
  } catch (error) {
    if (!(error instanceof AppError) || error.detail.why === undefined) throw error;
    // Where it is, the answer says anyway.
    context.addIssue({ code: "custom", message: error.detail.why });
    return z.NEVER;
  }
});
/** Whatever it looks like: one that no node has is not found. */
export const nodeId = z.object({ id: z.string().meta({ examples: ["m-02005e100001"] }) });
export const tag = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,50}$/, "a tag has 1 to 50 of A-Z, a-z, 0-9, _ and -")
  .transform((text) => text.toLowerCase());
export const installState = z.enum(INSTALL_STATES);

const word = printable(255).nullable().optional();
const hardware = { vendor: word, model: word, serial_number: word, system_uuid: word };
/** Why, for the history. */
export const comment = printable(1_024).nullable().optional();

export const newNode = z.strictObject({
  mac_address: macAddress,
  hostname: word,
  arch: z.enum(ARCHITECTURES).default("x86_64"),
  boot_mode: z.enum(BOOT_MODES).default("bios"),
  group_id: z.string().nullable().optional(),
  ...hardware,
});

export const nodePatch = z.strictObject({
  hostname: word,
  workflow_id: z.string().nullable().optional(),
  group_id: z.string().nullable().optional(),
  ...hardware,
});

export const stateTransition = z
  .strictObject({
    state: installState,
    comment,
    force: z.boolean().default(false),
    replacement_id: z.string().max(63).optional(),
    workflow_id: z.string().nullable().optional(),
  })
  .refine(({ state, workflow_id }) => workflow_id === undefined || state === "pending", {
    path: ["workflow_id"],
    message: "is assigned on the way to pending only",
  });

const diskName = z.string().min(1).max(255);
const erasedDisk = z.object({
  disk: diskName,
  serial: shortText.nullable().default(null),
  method: shortText,
  verified: z.boolean(),
});

const LONGEST_ERROR = 4_096;
/** An installer that sends its whole log must not have its failure refused for it. */
const reportedError = z
  .string()
  .transform((text) =>
    text.length <= LONGEST_ERROR ? text : `${text.slice(0, LONGEST_ERROR - 8).toWellFormed()}… (cut)`,
  );

const LONGEST_LINE = 255;
/** Of a step's output, its beginning. */
const reportedLine = z.string().transform((text) => text.slice(0, LONGEST_LINE).toWellFormed());

/** Fields that it does not know are left alone: installers are older and newer than servers. */
export const nodeReport = z.object({
  mac_address: macAddress,
  ip_address: shortText.nullable().optional(),
  hostname: shortText.nullable().optional(),
  vendor: shortText.nullable().optional(),
  model: shortText.nullable().optional(),
  serial_number: shortText.nullable().optional(),
  system_uuid: shortText.nullable().optional(),
  installation_status: z.enum(INSTALLATION_STATUSES).nullable().optional(),
  installation_progress: z.int().min(0).max(100).nullable().optional(),
  installation_error: reportedError.nullable().optional(),
  event: z.enum(NODE_EVENTS).nullable().optional(),
  step: z
    .object({
      sequence: z.int().min(1).max(1_000),
      state: z.enum(STEP_STATES),
      attempt: z.int().min(1).max(1_000).default(1),
      message: reportedLine.nullable().default(null),
    })
    .optional()
    .describe("With progress: how far a step of the workflow is."),
  erased_disk: erasedDisk.optional(),
  erased_disks: z.array(diskName).max(1_024).optional(),
  report_id: z.string().min(1).max(128).optional(),
  report_token: z.string().max(256).optional(),
});

const nullableText = z.string().nullable();
export const node = z
  .object({
    id: z.string(),
    mac_address: z.string(),
    hostname: nullableText,
    ip_address: nullableText,
    state: installState,
    workflow_id: nullableText,
    effective_workflow_id: nullableText,
    vendor: nullableText,
    model: nullableText,
    serial_number: nullableText,
    system_uuid: nullableText,
    arch: z.enum(ARCHITECTURES),
    boot_mode: z.enum(BOOT_MODES),
    group_id: nullableText,
    tags: z.array(z.string()),
    install_attempts: z.int(),
    last_install_error: nullableText,
    installation_progress: z.int().nullable(),
    state_changed_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
    last_seen_at: timestamp.nullable(),
    erased_disks: z.array(erasedDisk),
    installation_steps: z.array(
      z.object({
        sequence: z.int(),
        name: z.string(),
        type: z.string(),
        state: z.enum(STEP_STATES),
        attempts: z.int(),
        message: nullableText,
      }),
    ),
  })
  .meta({ id: "Node" });
/** What who reports is answered: the state that the node goes by, and no more, since a stranger may report. */
export const reportedNode = z.object({ state: installState }).meta({ id: "ReportedNode" });

export const reportedNodeJson = (state: string): z.input<typeof reportedNode> => ({
  state: state as z.input<typeof installState>,
});

export const nodeJson = (install: InstallRecord): z.input<typeof node> => ({
  id: install.id,
  mac_address: install.mac,
  hostname: install.facts.hostname,
  ip_address: install.facts.ipAddress,
  state: install.state.name as z.input<typeof installState>,
  workflow_id: install.workflowId,
  effective_workflow_id: install.effectiveWorkflowId,
  vendor: install.facts.vendor,
  model: install.facts.model,
  serial_number: install.facts.serialNumber,
  system_uuid: install.facts.systemUuid,
  arch: install.arch,
  boot_mode: install.bootMode,
  group_id: install.groupId,
  tags: [...install.tags],
  install_attempts: install.facts.installAttempts,
  last_install_error: install.facts.lastInstallError,
  installation_progress: install.facts.progress,
  state_changed_at: install.stateSince.toISOString(),
  created_at: install.createdAt.toISOString(),
  updated_at: install.updatedAt.toISOString(),
  last_seen_at: install.facts.lastSeenAt?.toISOString() ?? null,
  erased_disks: [...install.facts.erasedDisks],
  installation_steps: install.facts.steps.map(({ required: _, ...step }) => step),
});

export const transition = z
  .object({
    id: z.string(),
    from_state: installState,
    to_state: installState,
    triggered_by: z.enum(["admin", "system", "node_report"]),
    user_id: nullableText,
    comment: nullableText,
    metadata: z.record(z.string(), z.unknown()).nullable(),
    created_at: timestamp,
  })
  .meta({ id: "Transition" });

export const transitionJson = (each: InstallTransition) => ({
  id: each.id,
  from_state: each.fromState,
  to_state: each.toState,
  triggered_by: each.triggeredBy,
  user_id: each.userId,
  comment: each.comment,
  metadata: each.metadata,
  created_at: each.createdAt.toISOString(),
});

export const event = z
  .object({
    id: z.string(),
    event_type: z.string(),
    message: nullableText,
    actor: z.string(),
    event_metadata: z.record(z.string(), z.unknown()),
    created_at: timestamp,
  })
  .meta({ id: "Event" });

export const eventJson = (each: InstallEvent) => ({
  id: each.id,
  event_type: each.type,
  message: each.message,
  actor: each.actor,
  event_metadata: each.data,
  created_at: each.createdAt.toISOString(),
});
