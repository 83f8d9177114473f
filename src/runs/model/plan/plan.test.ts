import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../kernel/errors.ts";
import type { Json, JsonObject } from "../../../kernel/lifecycle.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import type { StepShape } from "../step.ts";
import { PAYLOAD_LIMITS } from "./payloads.ts";
import { CORE_STEP_SHAPES, PLAN_LIMITS, type PlanInput, type StepInput, validatePlan } from "./plan.ts";

const step = (change: Partial<StepInput> = {}): StepInput => ({
  name: "reboot",
  kind: "reboot",
  payload: {},
  ...change,
});
const plan = (...steps: readonly StepInput[]): PlanInput => ({ planId: "plan-1", displayName: "Plan 1", steps });
const stepOf = (kind: string, payload: JsonObject) => validatePlan(plan(step({ kind, payload }))).steps[0];
const refusal = (message: string, field: string) =>
  expect.objectContaining({
    kind: "invalid_argument",
    message: expect.stringContaining(`${field}: ${message}`),
    detail: { field },
  });

describe("a plan is taken", () => {
  test("with the server's defaults where it says nothing: 300 s and no retries", () => {
    expect(validatePlan(plan(step())).steps).toEqual([
      { name: "reboot", kind: "reboot", timeoutSeconds: 300, maxRetries: 0, payload: { force: false, mode: "bmc" } },
    ]);
  });

  test("with the defaults of a kind that has its own, and with what it says itself", () => {
    const slow: StepShape = {
      kind: "slow",
      defaults: { timeout: minutes(40), maxRetries: 3 },
      parse: () => ({}),
    };
    const shapes = new Map([["slow", slow]]);
    const valid = validatePlan(
      plan(
        step({ name: "a", kind: "slow", timeoutSeconds: 0 }),
        step({ name: "b", kind: "slow", timeoutSeconds: 7, maxRetries: 0 }),
      ),
      shapes,
    );
    expect(valid.steps).toMatchObject([
      { timeoutSeconds: 2_400, maxRetries: 3 },
      { timeoutSeconds: 7, maxRetries: 0 },
    ]);
  });

  test("up to its limits", () => {
    const most = Array.from({ length: PLAN_LIMITS.steps }, (_, at) =>
      step({ name: `s${at}`, timeoutSeconds: PLAN_LIMITS.timeoutSeconds, maxRetries: PLAN_LIMITS.maxRetries }),
    );
    expect(validatePlan(plan(...most)).steps).toHaveLength(100);
  });
});

describe("a plan is refused, with the field and the rule, for", () => {
  test.each<[string, PlanInput, string, string]>([
    ["no id", { ...plan(step()), planId: "" }, '"" is not a plan id', "plan_id"],
    ["an id with blanks", { ...plan(step()), planId: "my plan" }, '"my plan" is not a plan id', "plan_id"],
    ["an id that is too long", { ...plan(step()), planId: "p".repeat(129) }, '"ppp', "plan_id"],
    ["a long name", { ...plan(step()), displayName: "n".repeat(257) }, "must have at most 256", "display_name"],
    ["control characters", { ...plan(step()), displayName: "a\nb" }, "must not contain control", "display_name"],
    ["no steps", plan(), "between 1 and 100 steps are required, got 0", "steps"],
    [
      "too many steps",
      plan(...Array.from({ length: 101 }, (_, at) => step({ name: `s${at}` }))),
      "between 1 and 100 steps are required, got 101",
      "steps",
    ],
    ["a step without a name", plan(step({ name: " " })), "is required", "steps[0].name"],
    ["a step with a long name", plan(step({ name: "n".repeat(101) })), "must have at most 100", "steps[0].name"],
    [
      "a name that is used twice",
      plan(step(), step({ name: "other" }), step()),
      '"reboot" is already the name of steps[0]',
      "steps[2].name",
    ],
    [
      "a step without a kind",
      plan(step({ kind: undefined })),
      "has no kind; known: ssh, reboot, netboot, repave, join, verify, net, rma",
      "steps[0].kind",
    ],
    ["an unknown kind", plan(step({ kind: "explode" })), '"explode" is not a kind; known: ssh', "steps[0].kind"],
    ["a kind of another world", plan(step({ kind: "constructor" })), '"constructor" is not a kind', "steps[0].kind"],
    ["a negative timeout", plan(step({ timeoutSeconds: -1 })), "must be a whole number", "steps[0].timeout_seconds"],
    ["a timeout of days", plan(step({ timeoutSeconds: 86_401 })), "must be a whole", "steps[0].timeout_seconds"],
    ["half a second", plan(step({ timeoutSeconds: 0.5 })), "must be a whole number", "steps[0].timeout_seconds"],
    ["negative retries", plan(step({ maxRetries: -1 })), "must be a whole number", "steps[0].max_retries"],
    ["endless retries", plan(step({ maxRetries: 101 })), "must be a whole number", "steps[0].max_retries"],
  ])("%s", (_, wrong, message, field) => {
    expect(() => validatePlan(wrong)).toThrow(refusal(message, field));
  });
});

describe("the payload of a step", () => {
  test.each<[string, JsonObject, JsonObject]>([
    ["ssh", { script_ref: "a.sh" }, { script_ref: "a.sh", args: {} }],
    [
      "ssh",
      { script_ref: "a.sh", args: { version: "1; rm -rf /" } },
      { script_ref: "a.sh", args: { version: "1; rm -rf /" } },
    ],
    ["reboot", { force: true, mode: "in_band" }, { force: true, mode: "in_band" }],
    ["netboot", {}, { profile: "", mode: "PXE" }],
    ["netboot", { profile: "p", mode: "DISK" }, { profile: "p", mode: "DISK" }],
    ["repave", { image: "ubuntu-22.04" }, { image_ref: "ubuntu-22.04", cloud_init_ref: "" }],
    ["repave", { image_ref: "u", image: "u", cloud_init_ref: "c" }, { image_ref: "u", cloud_init_ref: "c" }],
    ["join", {}, { cluster_ref: "" }],
    ["join", { cluster_ref: "a" }, { cluster_ref: "a" }],
    ["join", { target_cluster: { cluster_id: "a" } }, { cluster_ref: "a" }],
    ["verify", { target_cluster: { cluster_id: "a" }, cluster_ref: "a" }, { cluster_ref: "a" }],
    ["verify", { target_cluster: null, cluster_ref: "a" }, { cluster_ref: "a" }],
    ["net", { params: { action: "reconfigure" } }, { params: { action: "reconfigure" } }],
    ["rma", {}, { reason: "no reason specified" }],
    ["rma", { reason: "dead DIMM" }, { reason: "dead DIMM" }],
  ])("of %s, %j, is taken", (kind, payload, parsed) => {
    expect(stepOf(kind, payload)?.payload).toEqual(parsed);
  });

  const tooMany = Object.fromEntries(Array.from({ length: PAYLOAD_LIMITS.entries + 1 }, (_, at) => [`a${at}`, ""]));
  test.each<[string, JsonObject, string, string]>([
    ["ssh", {}, "is required", "script_ref"],
    ["ssh", { script_ref: "a.sh", args: { "A B": "x" } }, '"A B" is not a valid name', "args"],
    ["ssh", { script_ref: "a.sh", args: { a: 1 } }, "must be text", "args.a"],
    ["ssh", { script_ref: "a.sh", args: { a: "\0" } }, "must not contain the NUL character", "args.a"],
    ["ssh", { script_ref: "a.sh", args: { a: "x".repeat(16_385) } }, "must have at most 16384", "args.a"],
    [
      "ssh",
      { script_ref: "a.sh", args: { MILLWRIGHT_X: "x" } },
      "names that begin with MILLWRIGHT_ are ours",
      "args.MILLWRIGHT_X",
    ],
    [
      "ssh",
      { script_ref: "a.sh", args: { BASH_ENV: "$(reboot)" } },
      "is what shells and loaders obey",
      "args.BASH_ENV",
    ],
    [
      "ssh",
      { script_ref: "a.sh", args: { a: "x", LD_PRELOAD: "x" } },
      "is what shells and loaders obey",
      "args.LD_PRELOAD",
    ],
    ["ssh", { script_ref: "a.sh\n" }, "must not contain control characters", "script_ref"],
    ["netboot", { profile: "a\nb" }, "must not contain control characters", "profile"],
    ["repave", { image: "a\u001b[31m" }, "must not contain control characters", "image"],
    ["rma", { reason: "a\rb" }, "must not contain control characters", "reason"],
    ["ssh", { script_ref: "a.sh", args: tooMany }, "must have at most 64 entries", "args"],
    ["ssh", { script_ref: "a.sh", args: [] }, "must be an object", "args"],
    ["ssh", { script_ref: "a".repeat(513) }, "must have at most 512 characters", "script_ref"],
    ["ssh", { script_ref: "a.sh", command: "reboot" }, "is not known; known: script_ref, args", "command"],
    ["reboot", { force: "yes" }, "must be true or false", "force"],
    ["reboot", { mode: "BMC" }, 'must be one of bmc, in_band, got "BMC"', "mode"],
    ["netboot", { mode: "pxe" }, 'must be one of PXE, HTTP, DISK, got "pxe"', "mode"],
    ["repave", {}, "is required", "image_ref"],
    ["repave", { image_ref: "a", image: "b" }, 'says "a", but image says "b"', "image_ref"],
    [
      "join",
      { target_cluster: { cluster_id: "b" }, cluster_ref: "a" },
      'says "a", but target_cluster.cluster_id says "b"',
      "cluster_ref",
    ],
    ["verify", { target_cluster: { cluster_id: "b" }, cluster_ref: "a" }, 'says "a", but', "cluster_ref"],
    [
      "join",
      { target_cluster: { kubeconfig_secret_ref: "s" } },
      "is not taken",
      "target_cluster.kubeconfig_secret_ref",
    ],
    ["join", { target_cluster: "a" }, "must be an object", "target_cluster"],
    ["net", {}, "is required", "params"],
    ["rma", { reason: 7 }, "must be text", "reason"],
  ])("of %s, %j, is refused", (kind, payload, message, name) => {
    expect(() => stepOf(kind, payload)).toThrow(refusal(message, `steps[0].${kind}.${name}`));
  });

  test("is taken or refused as the caller's mistake, whatever it is, and taken again as it was parsed", () => {
    const names = [
      "script_ref",
      "args",
      "mode",
      "image",
      "image_ref",
      "cluster_ref",
      "target_cluster",
      "params",
      "reason",
    ];
    const value = fc.oneof(fc.jsonValue(), fc.string(), fc.constantFrom("PXE", "bmc", "a"));
    const payload = fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), value, { maxKeys: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...CORE_STEP_SHAPES.keys()), payload, (kind, anything) => {
        try {
          const parsed = stepOf(kind, anything as Record<string, Json>)?.payload ?? {};
          expect(stepOf(kind, parsed)?.payload).toEqual(parsed);
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          expect(error.kind).toBe("invalid_argument");
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
