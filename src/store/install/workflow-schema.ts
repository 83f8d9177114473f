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

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
export const device = z
  .string()
  .max(256)
  .regex(/^(\/dev\/[A-Za-z0-9_/.:+-]+)?$/, "a device (/dev/…), or empty for the first disk")
  .default("");
/** The environment that runs before anything is installed. */
const environment = { kernel_url: location, initrd_url: location, cmdline };

const BOOTS = {
  kernel: z.strictObject({
    method: z.literal("kernel"),
    kernel_url: location,
    initrd_url: location.optional(),
    cmdline,
    environment: z
      .boolean()
      .optional()
      .describe("The kernel is that of `millwright netboot environment`: it carries out the steps."),
  }),
  sanboot: z.strictObject({ method: z.literal("sanboot"), iso_url: locationOf("http", "https", "tftp", "iscsi") }),
  chain: z.strictObject({ method: z.literal("chain"), chain_url: location }),
  image: z.strictObject({
    method: z.literal("image"),
    ...environment,
    image_url: locationOf("http", "https"),
    image_digest: digest,
    target_device: device,
  }),
  clone: z.strictObject({
    method: z.literal("clone"),
    ...environment,
    source_url: locationOf("http"),
    source_digest: digest.optional(),
    target_device: device,
  }),
};

/** What the boot script does, by the method: as it is kept. */
export const workflowBootSchema: z.ZodType<WorkflowBoot> = z.discriminatedUnion("method", [
  BOOTS.kernel,
  BOOTS.sanboot,
  BOOTS.chain,
  BOOTS.image,
  BOOTS.clone,
]);

/** What `url` means, by the method. */
const MEANT_BY_URL = {
  kernel: "kernel_url",
  sanboot: "iso_url",
  chain: "chain_url",
  image: "image_url",
  clone: "source_url",
} as const;
const url = z.string().max(LONGEST_LOCATION).optional().describe("Another name for the location of this method.");

/** As callers give it: `url` stands for the location that the method is about. */
export const bootInputSchema = z
  .discriminatedUnion("method", [
    BOOTS.kernel.partial({ kernel_url: true }).extend({ url }),
    BOOTS.sanboot.partial({ iso_url: true }).extend({ url }),
    BOOTS.chain.partial({ chain_url: true }).extend({ url }),
    BOOTS.image.partial({ image_url: true }).extend({ url }),
    BOOTS.clone.partial({ source_url: true }).extend({ url }),
  ])
  .transform((given, context): WorkflowBoot => {
    const { url: alias, ...said } = given;
    const field = MEANT_BY_URL[given.method];
    const read = workflowBootSchema.safeParse(alias === undefined ? said : { [field]: alias, ...said });
    if (read.success) return read.data;
    for (const { message, path } of read.error.issues) context.addIssue({ code: "custom", message, path: [...path] });
    return z.NEVER;
  });

const STEP = {
  sequence: z.int().min(1).max(1_000),
  name: z.string().min(1).max(100),
  type: z.enum(STEP_TYPES),
  config: z.record(z.string(), json).default({}),
  on_failure: z.enum(ON_FAILURE).default("fail"),
  next_state: z.enum(WORKFLOW_NEXT_STATES).nullable().default(null),
};
const timeout = z.int().min(1).max(86_400);
const retries = z.int().min(0).max(100);
const delay = z.int().min(0).max(86_400);
const ABOUT = "A stage of the installation: the environment carries it out and reports it.";

/** As it is kept. Those that earlier versions kept for installers of other people are read as they are. */
export const workflowStepSchema: z.ZodType<WorkflowStep> = z
  .strictObject({
    ...STEP,
    timeout_seconds: timeout.default(300),
    max_retries: retries.default(0),
    retry_delay_seconds: delay.default(30),
  })
  .describe(ABOUT);

/** Who wants a step retried and does not say how often. */
const USUAL_RETRIES = 3;

/** As callers give it: `timeout` and `retry_delay` are other names, in seconds too. */
export const stepInputSchema = z
  .strictObject({
    ...STEP,
    timeout_seconds: timeout.optional(),
    timeout: timeout.optional().describe("Another name for timeout_seconds."),
    max_retries: retries.optional().describe("0; 3 where on_failure is retry."),
    retry_delay_seconds: delay.optional(),
    retry_delay: delay.optional().describe("Another name for retry_delay_seconds."),
  })
  .transform(
    ({ timeout: t, retry_delay: d, timeout_seconds, retry_delay_seconds, max_retries, ...step }): WorkflowStep => ({
      ...step,
      timeout_seconds: timeout_seconds ?? t ?? 300,
      max_retries: max_retries ?? (step.on_failure === "retry" ? USUAL_RETRIES : 0),
      retry_delay_seconds: retry_delay_seconds ?? d ?? 30,
    }),
  )
  .describe(ABOUT);
