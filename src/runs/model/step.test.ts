import { describe, expect, expectTypeOf, test } from "vitest";
import type { Inventory } from "../../capabilities/inventory.ts";
import type { PowerControl } from "../../capabilities/power-control.ts";
import type { Sensors } from "../../capabilities/sensors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { pauseBefore } from "../../kernel/time/retry.ts";
import { parsePayload } from "./plan/payloads.ts";
import { validatePlan } from "./plan/plan.ts";
import {
  capabilitiesFor,
  collectSteps,
  defineStep,
  PROBE_STATES,
  readProbe,
  STEP_DEFAULTS,
  STEP_RETRY,
} from "./step.ts";

const reboot = defineStep({
  kind: "reboot",
  needs: ["power"],
  mayUse: ["inventory"],
  alsoNeeds: ({ mode }) => (mode === "bmc" ? ["inventory"] : []),
  defaults: { timeout: minutes(7) },
  reboots: true,
  parse: parsePayload.reboot,
  async before({ can, payload }) {
    expectTypeOf(can).toEqualTypeOf<{ readonly power: PowerControl } & { readonly inventory?: Inventory }>();
    // @ts-expect-error: it declared no need of sensors
    expectTypeOf(can.sensors).toEqualTypeOf<Sensors>();
    expectTypeOf(payload.mode).toEqualTypeOf<"bmc" | "in_band">();
    return { bootId: "b1" };
  },
  async act({ evidence }) {
    expectTypeOf(evidence).toEqualTypeOf<{ bootId: string }>();
  },
  async probe({ evidence }) {
    return evidence.bootId === "b1" ? "not_done" : { state: "done", facts: { bootId: evidence.bootId } };
  },
});

const plain = defineStep({
  kind: "plain",
  needs: [],
  parse: () => ({}),
  before: async () => ({}),
  act: async () => {},
  probe: async () => "done",
});

describe("a step kind", () => {
  test("keeps its own defaults and takes the server's for the rest", () => {
    expect(reboot.defaults).toEqual({ timeout: minutes(7), maxRetries: STEP_DEFAULTS.maxRetries });
    expect(plain).toMatchObject({ defaults: STEP_DEFAULTS, mayUse: [], reboots: false });
  });

  test("needs what it declares, and what its payload makes it need, each once", () => {
    const steps = collectSteps([reboot, plain]);
    const needs = (kind: string, payload: { mode?: string }) => {
      const step = steps.get(kind);
      if (!step) throw new Error(`there is no ${kind}`);
      return capabilitiesFor(step, payload);
    };
    expect(needs("reboot", { mode: "bmc" })).toEqual(["power", "inventory"]);
    expect(needs("reboot", { mode: "in_band" })).toEqual(["power"]);
    expect(needs("plain", {})).toEqual([]);
  });

  test("serves to validate plans as it is", () => {
    const plan = {
      planId: "p",
      displayName: "",
      steps: [{ name: "r", kind: "reboot", payload: { mode: "in_band" } }],
    };
    expect(validatePlan(plan, collectSteps([reboot])).steps).toEqual([
      { name: "r", kind: "reboot", timeoutSeconds: 420, maxRetries: 0, payload: { force: false, mode: "in_band" } },
    ]);
  });

  test("has a word of its own", () => {
    expect(() => collectSteps([reboot, plain, reboot])).toThrow("the same word");
  });
});

test("a probe may answer with a word alone, or say more", () => {
  for (const state of PROBE_STATES) expect(readProbe(state)).toEqual({ state });
  expect(readProbe({ state: "in_progress", message: "powering on" })).toEqual({
    state: "in_progress",
    message: "powering on",
  });
});

test("retries wait 1, 2, 4, 8 and then 10 seconds", () => {
  const unspread = () => 0.5;
  expect([1, 2, 3, 4, 5, 6].map((retry) => pauseBefore(retry, STEP_RETRY, unspread))).toEqual([
    1_000, 2_000, 4_000, 8_000, 10_000, 10_000,
  ]);
});
