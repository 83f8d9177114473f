import { describe, expect, test } from "vitest";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import { ACTIVITIES, RACK_PHASES } from "../../lifecycles/rack/rack.ts";
import { rackStateJson, rackStateOfAlias, rackStateText } from "./rack-state.ts";

// biome-ignore format: a table is read by its columns
const WIRE = [
  ["created",     {},                                                                    "Created",                                             '{"state":"created"}'],
  ["discovering", { topology: "x" },                                                     "Discovering",                                         '{"state":"discovering"}'],
  ["maintenance", { activity: "firmware_upgrade", phase: "start" },                      "Maintenance(FirmwareUpgrade(Start))",                 '{"state":"maintenance","maintenance_state":{"FirmwareUpgrade":{"rack_firmware_upgrade":"Start"}}}'],
  ["maintenance", { activity: "firmware_upgrade", phase: "wait_for_complete" },          "Maintenance(FirmwareUpgrade(WaitForComplete))",       '{"state":"maintenance","maintenance_state":{"FirmwareUpgrade":{"rack_firmware_upgrade":"WaitForComplete"}}}'],
  ["maintenance", { activity: "configure_nmx_cluster", phase: "start" },                 "Maintenance(ConfigureNmxCluster(Start))",             '{"state":"maintenance","maintenance_state":{"ConfigureNmxCluster":{"configure_nmx_cluster":"Start"}}}'],
  ["maintenance", { activity: "configure_nmx_cluster", phase: "wait_for_fabric_status" }, "Maintenance(ConfigureNmxCluster(WaitForFabricStatus))", '{"state":"maintenance","maintenance_state":{"ConfigureNmxCluster":{"configure_nmx_cluster":"WaitForFabricStatus"}}}'],
  ["maintenance", { activity: "power_sequence", phase: "powering_off" },                 "Maintenance(PowerSequence(PoweringOff))",             '{"state":"maintenance","maintenance_state":{"PowerSequence":{"rack_power":"PoweringOff"}}}'],
  ["maintenance", { activity: "power_sequence", phase: "powering_on" },                  "Maintenance(PowerSequence(PoweringOn))",              '{"state":"maintenance","maintenance_state":{"PowerSequence":{"rack_power":"PoweringOn"}}}'],
  ["maintenance", { activity: "completed", phase: "completed" },                         "Maintenance(Completed)",                              '{"state":"maintenance","maintenance_state":"Completed"}'],
  ["validating",  {},                                                                    "Validating(Pending)",                                 '{"state":"validating","validating_state":"Pending"}'],
  ["validating",  { run: "run-1" },                                                      "Validating(InProgress)",                              '{"state":"validating","validating_state":{"InProgress":{"run_id":"run-1"}}}'],
  ["ready",       {},                                                                    "Ready",                                               '{"state":"ready"}'],
  ["error",       { cause: "it failed", origin: "activity" },                            "Error(it failed)",                                    '{"state":"error","cause":"it failed"}'],
  ["deleting",    {},                                                                    "Deleting",                                            '{"state":"deleting"}'],
] as const;

test.each(WIRE)("%s %j is %s on the wire", (name, carried, text, json) => {
  expect(rackStateText(name, carried)).toBe(text);
  expect(JSON.stringify(rackStateJson(name, carried))).toBe(json);
});

test("every state is in the table", () => {
  expect([...new Set(WIRE.map(([name]) => name))].toSorted()).toEqual(Object.keys(rackLifecycle.states).toSorted());
});

describe("every state, activity and phase", () => {
  const texts = new Set<string>(WIRE.map(([, , text]) => text));
  const all = Object.keys(rackLifecycle.states).flatMap((state) =>
    [...ACTIVITIES, "completed"].flatMap((activity) => RACK_PHASES.map((phase) => ({ state, activity, phase }))),
  );
  test.each(all)("$state $activity $phase has words of the contract", ({ state, activity, phase }) => {
    const text = rackStateText(state, { activity, phase, cause: "it failed" });
    expect(texts).toContain(text);
    expect(rackStateJson(state, { activity, phase }).state).toBe(state);
  });
});

test("words of older clients are understood", () => {
  expect(["expected", "unknown", "validation", "ready", "nonsense"].map(rackStateOfAlias)).toEqual([
    "created",
    "created",
    "validating",
    "ready",
    undefined,
  ]);
});
