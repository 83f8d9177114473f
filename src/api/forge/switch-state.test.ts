import { expect, test } from "vitest";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { REPROVISIONING_STEPS } from "../../lifecycles/switch/switch.ts";
import { switchStateForWord, switchStateJson } from "./switch-state.ts";

/** The sub-states of initializing, configuring, validating and bomvalidating are ours by analogy; the others are the contract's. */
// biome-ignore format: a table is read by its columns
const WIRE = [
  ["created",        {},                                            '{"state":"created"}'],
  ["initializing",   {},                                            '{"state":"initializing","initializing_state":"WaitForOsMachineInterface"}'],
  ["configuring",    {},                                            '{"state":"configuring","configuring_state":"RotateOsPassword"}'],
  ["validating",     {},                                            '{"state":"validating","validating_state":"ValidationComplete"}'],
  ["bom_validating", {},                                            '{"state":"bomvalidating","bom_validating_state":"BomValidationComplete"}'],
  ["ready",          {},                                            '{"state":"ready"}'],
  ["reprovisioning", { step: "waiting_for_rack_firmware_upgrade" }, '{"state":"reprovisioning","reprovisioning_state":"WaitingForRackFirmwareUpgrade"}'],
  ["reprovisioning", { step: "waiting_for_nmxc_configure" },        '{"state":"reprovisioning","reprovisioning_state":"WaitingForNMXCConfigure"}'],
  ["error",          { cause: "it failed", failure: {} },           '{"state":"error","cause":"it failed"}'],
  ["deleting",       {},                                            '{"state":"deleting"}'],
] as const;

test.each(WIRE)("%s %j is %s on the wire", (name, carried, json) => {
  expect(JSON.stringify(switchStateJson(name, carried))).toBe(json);
});

test("every state and every step has its words", () => {
  expect([...new Set(WIRE.map(([name]) => name))].toSorted()).toEqual(Object.keys(switchLifecycle.states).toSorted());
  expect(WIRE.flatMap(([, carried]) => ("step" in carried ? [carried.step] : []))).toEqual(REPROVISIONING_STEPS);
});

test("the words of the filter are those of the state text", () => {
  for (const [name, , json] of WIRE) expect(switchStateForWord(JSON.parse(json).state)).toBe(name);
  expect(switchStateForWord("bom_validating")).toBeUndefined();
});
