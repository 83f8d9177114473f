import { z } from "zod";
import type { Json } from "../../kernel/lifecycle.ts";
import {
  ON_FAILURE,
  STEP_TYPES,
  WORKFLOW_NEXT_STATES,
  type WorkflowBoot,
  type WorkflowStep,
} from "../../lifecycles/install/workflow.ts";

const json: z.ZodType<Json> = z.json();
const LONGEST_LOCATION = 2_048;
/** Of our own file server (`/files/…`), or elsewhere. It becomes a word of a script: no blanks, nothing that ends a line. */
const locationOf = (...schemes: readonly string[]) =>
  z
    .string()
    .max(LONGEST_LOCATION)
    .regex(
      new RegExp(`^(/|\\$\\{server\\}/|(${schemes.join("|")}):)[\\x21-\\x7e]+$`),
      `a path of this server (/files/…) or a URL (${schemes.join(", ")}), of printable ASCII without blanks`,
    );
const location = locationOf("http", "https", "tftp");
const ONE_LINE = /^[\x20-\x7e]*$/;
/** What iPXE takes for the end of a command where it stands alone. */
const COMMAND_END = /(^|\s)(\|\||&&|;)(\s|$)/;
const cmdline = z
  .string()
  .max(4_096)
  .regex(ONE_LINE, "one line of printable ASCII")
  .refine((text) => !COMMAND_END.test(text), "||, && and ; must not stand alone: iPXE ends the command there")
  .default("");

/** What the boot script does, by the method: as callers give it, and as it is kept. */
export const workflowBootSchema: z.ZodType<WorkflowBoot> = z.discriminatedUnion("method", [
  z.strictObject({
    method: z.literal("kernel"),
    kernel_url: location,
    initrd_url: location.optional(),
    cmdline,
  }),
  z.strictObject({ method: z.literal("sanboot"), iso_url: locationOf("http", "https", "tftp", "iscsi") }),
  z.strictObject({ method: z.literal("chain"), chain_url: location }),
  z.strictObject({
    method: z.literal("image"),
    /** The environment that writes the image. */
    kernel_url: location,
    initrd_url: location,
    cmdline,
    image_url: locationOf("http", "https"),
    image_digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
    target_device: z
      .string()
      .max(256)
      .regex(/^(\/dev\/[A-Za-z0-9_/.:+-]+)?$/, "a device (/dev/…), or empty for the first disk")
      .default(""),
  }),
]);

export const workflowStepSchema: z.ZodType<WorkflowStep> = z
  .strictObject({
    sequence: z.int().min(1).max(1_000),
    name: z.string().min(1).max(100),
    type: z.enum(STEP_TYPES),
    config: z.record(z.string(), json).default({}),
    timeout_seconds: z.int().min(1).max(86_400).default(300),
    on_failure: z.enum(ON_FAILURE).default("fail"),
    max_retries: z.int().min(0).max(100).default(0),
    retry_delay_seconds: z.int().min(0).max(86_400).default(30),
    next_state: z.enum(WORKFLOW_NEXT_STATES).nullable().default(null),
  })
  .describe(
    "A stage for the installer, which reads it, carries it out and reports it. Millwright stores it and keeps the order; it does not act on it.",
  );
