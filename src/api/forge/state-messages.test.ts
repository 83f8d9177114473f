import { describe, expect, test } from "vitest";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { MAINTENANCE_OPERATIONS } from "../../lifecycles/power-shelf/power-shelf.ts";
import { FORGE_OPERATIONS, FORGE_STATES, forgeStateOf, jsonbText, stateForForgeWord } from "./state-messages.ts";

describe("states on the forge wire", () => {
  test("every state of the lifecycle has one spelling, all lower case without separators", () => {
    expect(Object.keys(FORGE_STATES)).toEqual(Object.keys(powerShelfLifecycle.states));
    for (const word of Object.values(FORGE_STATES)) expect(word).toMatch(/^[a-z]+$/);
    expect(new Set(Object.values(FORGE_STATES)).size).toBe(Object.keys(FORGE_STATES).length);
  });

  test("every spelling leads back to its state", () => {
    for (const [state, word] of Object.entries(FORGE_STATES)) expect(stateForForgeWord(word)).toBe(state);
  });

  test("our own spelling is no word of the contract", () => {
    expect(stateForForgeWord("fetching_data")).toBeUndefined();
    expect(stateForForgeWord("rotatingbmc")).toBeUndefined();
    expect(stateForForgeWord("")).toBeUndefined();
  });

  test("every operation has a spelling", () => {
    expect(Object.keys(FORGE_OPERATIONS)).toEqual([...MAINTENANCE_OPERATIONS]);
  });

  test.each([
    ["fetching_data", {}, '{"state":"fetchingdata"}'],
    ["ready", {}, '{"state":"ready"}'],
    [
      "maintenance",
      { operation: "power_on", request: { id: "r" } },
      '{"state":"maintenance","operation":{"operation":"poweron"}}',
    ],
    ["maintenance", { operation: "power_off" }, '{"state":"maintenance","operation":{"operation":"poweroff"}}'],
    ["error", { cause: 'says "no"' }, '{"state":"error","cause":"says \\"no\\""}'],
  ])("%s is the contract's JSON with its tag first, and nothing else of what it carries", (name, carried, text) => {
    expect(JSON.stringify(forgeStateOf(name, carried))).toBe(text);
  });

  test("a state of a damaged or newer row is still shown, so that one such row hides no other", () => {
    expect(forgeStateOf("melting_down", {})).toEqual({ state: "meltingdown" });
    expect(forgeStateOf("maintenance", {})).toEqual({ state: "maintenance" });
    expect(forgeStateOf("error", {})).toEqual({ state: "error" });
  });
});

describe("JSON as PostgreSQL prints jsonb", () => {
  test.each([
    [{ state: "ready" }, '{"state": "ready"}'],
    [
      { state: "maintenance", operation: { operation: "poweron" } },
      '{"state": "maintenance", "operation": {"operation": "poweron"}}',
    ],
    [{ state: "error", cause: "a\nb" }, '{"cause": "a\\nb", "state": "error"}'],
    [{ b: [1, null, true], a: {} }, '{"a": {}, "b": [1, null, true]}'],
  ])("%j", (value, text) => {
    expect(jsonbText(value)).toBe(text);
  });
});
