import { z } from "zod";

const milliseconds = z.number().min(0).max(86_400_000);
const headerName = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, "must be a header name");
const headerValue = z.string().regex(/^[\x20-\x7e]{0,512}$/, "must be printable ASCII");

/** A few kilobytes can be nested deeply enough to exhaust the stack of whoever writes them out again. */
const DEEPEST_BODY = 32;
const isNestedAtMost = (value: unknown, levels: number): boolean =>
  typeof value !== "object" ||
  value === null ||
  (levels > 0 && Object.values(value).every((item) => isNestedAtMost(item, levels - 1)));

/** Whether the device carries the request out before its answer goes wrong; "after" is the lost answer. */
const when = z.enum(["before", "after"]).optional();

const faultSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("status"),
    status: z.int().min(200).max(599),
    body: z
      .unknown()
      .refine((body) => isNestedAtMost(body, DEEPEST_BODY), `must be nested at most ${DEEPEST_BODY} deep`)
      .optional(),
    headers: z.record(headerName, headerValue).optional(),
    when,
  }),
  z.strictObject({ type: z.literal("latency"), ms: milliseconds }),
  z.strictObject({ type: z.literal("drop"), when }),
  z.strictObject({ type: z.literal("hang"), when }),
  z.strictObject({ type: z.literal("garbage"), when }),
  z.strictObject({ type: z.literal("flap"), up_ms: milliseconds.positive(), down_ms: milliseconds.positive() }),
  z.strictObject({ type: z.literal("wrong_credentials") }),
  z.strictObject({ type: z.literal("wrong_serial"), serial: z.string().min(1).max(128).optional() }),
  z.strictObject({ type: z.literal("lie_accept") }),
  z.strictObject({ type: z.literal("lie_state") }),
  z.strictObject({ type: z.literal("install_fails") }),
  z.strictObject({ type: z.literal("install_dies"), percent: z.number().min(0).max(99).default(60) }),
  z.strictObject({ type: z.literal("loses_lease") }),
  z.strictObject({ type: z.literal("hangs_in_post") }),
  z.strictObject({ type: z.literal("join_fails") }),
  z.strictObject({ type: z.literal("ssh_refused") }),
  z.strictObject({ type: z.literal("ssh_hang") }),
  z.strictObject({ type: z.literal("wrong_host_key") }),
  z.strictObject({ type: z.literal("flash_stuck"), percent: z.number().min(0).max(99).default(60) }),
  z.strictObject({ type: z.literal("flash_lies") }),
  z.strictObject({ type: z.literal("flash_fails") }),
  z.strictObject({ type: z.literal("flash_wrong_image_accepted") }),
  z.strictObject({ type: z.literal("update_busy") }),
  z.strictObject({ type: z.literal("fabric_never_configured") }),
  z.strictObject({ type: z.literal("task_lost") }),
  z.strictObject({ type: z.literal("job_never_ends") }),
  z.strictObject({ type: z.literal("unreachable_after_flash"), ms: milliseconds }),
  z.strictObject({ type: z.literal("commissioning_stuck") }),
  z.strictObject({ type: z.literal("commissioning_fails") }),
  z.strictObject({ type: z.literal("testing_fails") }),
  z.strictObject({ type: z.literal("no_boss_disk") }),
  z.strictObject({ type: z.literal("deploy_fails") }),
  z.strictObject({ type: z.literal("deploy_datasource_fails") }),
  z.strictObject({ type: z.literal("deploy_stuck") }),
  z.strictObject({ type: z.literal("erase_fails") }),
  z.strictObject({ type: z.literal("release_fails") }),
  z.strictObject({ type: z.literal("hardware_sync_silent") }),
  z.strictObject({ type: z.literal("hardware_sync_ignored") }),
  z.strictObject({ type: z.literal("power_off_ignored") }),
  z.strictObject({ type: z.literal("agent_never_enrols") }),
  z.strictObject({ type: z.literal("agent_silent") }),
  z.strictObject({ type: z.literal("agent_unhealthy") }),
  z.strictObject({ type: z.literal("agent_fails_task") }),
  z.strictObject({ type: z.literal("agent_dies_in_task") }),
  z.strictObject({ type: z.literal("agent_answers_twice") }),
  z.strictObject({ type: z.literal("link_refused") }),
  z.strictObject({ type: z.literal("images_gone") }),
]);

/** Where × what × how often. All times in a rule are real time, whatever the speed of the simulation. */
export const faultRuleSchema = z.strictObject({
  /** A device's id, or a pattern in which `*` stands for anything. */
  device: z.string().min(1).max(200),
  method: z.enum(["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"]).optional(),
  /** A prefix, or a pattern for the whole path if it has a `*`. */
  path: z.string().min(1).max(500).optional(),
  fault: faultSchema,
  /** How often at most; forever if absent. */
  times: z.int().min(1).optional(),
  /** Drawn from the seed, for each occasion anew. */
  probability: z.number().min(0).max(1).optional(),
  /** How many occasions pass unharmed first. */
  after: z.int().min(0).optional(),
});

export type FaultRule = z.infer<typeof faultRuleSchema>;
export type Fault = FaultRule["fault"];
export type FaultType = Fault["type"];
export type FaultOf<T extends FaultType> = Extract<Fault, { type: T }>;

/** One thing that happens at a device. Changes made at the rack have neither method nor path. */
export interface Occasion {
  readonly device: string;
  readonly method?: string;
  readonly path?: string;
}

export function ruleCovers(rule: FaultRule, occasion: Occasion): boolean {
  if (!matchesPattern(rule.device, occasion.device)) return false;
  if (rule.method !== undefined && rule.method !== occasion.method) return false;
  if (rule.path === undefined) return true;
  if (occasion.path === undefined) return false;
  return rule.path.includes("*") ? matchesPattern(rule.path, occasion.path) : occasion.path.startsWith(rule.path);
}

/** `*` stands for any characters, also none. Linear in the text, so that no pattern can stall the simulator. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  const tail = rest.pop();
  if (tail === undefined) return text === pattern;
  if (!text.startsWith(head)) return false;
  let position = head.length;
  for (const part of rest) {
    const found = text.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return text.length - tail.length >= position && text.endsWith(tail);
}
