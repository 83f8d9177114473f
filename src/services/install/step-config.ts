import { z } from "zod";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { WorkflowStep } from "../../lifecycles/install/workflow.ts";
import { device } from "../../store/install/workflow-schema.ts";

const LONGEST_TEXT = 65_536;
const text = z.string().min(1).max(LONGEST_TEXT);
const location = z
  .string()
  .max(2_048)
  .regex(
    /^(\/|\$\{server\}\/|https?:\/\/)[\x21-\x7e]+$/,
    "a path of this server (/files/…) or an http(s) URL, without blanks",
  );
const LARGEST_DISK_MIB = 2_097_151;

/** Primary partitions of a table that every firmware reads; the last one may take what is left. */
const partitions = z
  .array(
    z.strictObject({
      size_mib: z.int().min(1).max(LARGEST_DISK_MIB).optional(),
      type: z
        .string()
        .regex(/^[0-9A-Fa-f]{2}$/, "two hexadecimal digits, like 83")
        .default("83"),
      bootable: z.boolean().default(false),
    }),
  )
  .min(1)
  .max(4)
  .refine((all) => all.slice(0, -1).every(({ size_mib }) => size_mib !== undefined), "only the last may lack size_mib");

/** What each type of step can be told. Whatever else is in a config, nobody would act on. */
const CONFIGS = {
  /** That of the boot itself is in the workflow's `boot` by now. */
  boot: z.strictObject({}),
  reboot: z.strictObject({}),
  wait: z
    .strictObject({ seconds: z.int().min(0).max(86_400).optional(), url: location.optional() })
    .refine(({ seconds, url }) => seconds !== undefined || url !== undefined, "seconds or url is needed"),
  disk_scan: z.strictObject({
    min_disks: z.int().min(1).max(1_024).default(1),
    min_bytes: z.int().min(0).default(0),
  }),
  partition: z.strictObject({ device, partitions }),
  script: z
    .strictObject({ script: text.optional(), url: location.optional(), rollback: text.optional() })
    .refine(({ script, url }) => (script === undefined) !== (url === undefined), "either script or url is needed"),
  cloud_init: z.strictObject({
    device,
    partition: z.int().min(1).max(128).default(1),
    user_data: text,
    meta_data: text.optional(),
    network_config: text.optional(),
  }),
} satisfies Record<WorkflowStep["type"], z.ZodType>;

export type StepFault = { readonly path: readonly PropertyKey[]; readonly message: string };

/** The config with all that it leaves out, or what is wrong with it. */
export function readStepConfig({ type, config }: Pick<WorkflowStep, "type" | "config">): JsonObject | StepFault[] {
  const read = CONFIGS[type].safeParse(config);
  return read.success ? (read.data as JsonObject) : read.error.issues.map(({ path, message }) => ({ path, message }));
}
