import { describe, expect, test } from "vitest";
import { pathsThrough, type Step } from "../../../test/support/lifecycle-paths.ts";
import { decide, fail, follow, type Move } from "../../kernel/decide.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import { OWNERS, type Row, STAY } from "../../kernel/lifecycle.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { powerShelfLifecycle } from "./lifecycle.ts";
import { MAINTENANCE_OPERATIONS, type MaintenanceRequest, type PowerShelf } from "./power-shelf.ts";

/**
 * "Transitions (by trigger)" of the specification, row by row and in its words, each with the trigger that stands for its
 * condition here. The two rows for PowerOn and PowerOff are one row here, which carries the operation.
 */
// biome-ignore format: a table is read by its columns
const SPECIFICATION = [
  // from           to              trigger / condition                                     here
  ["Initializing",  "FetchingData", "Controller processes power shelf",                     "processed"],
  ["FetchingData",  "Configuring",  "Data fetch complete",                                  "data_fetched"],
  ["Configuring",   "Ready",        "Configuration complete",                               "configured"],
  ["Ready",         "Deleting",     "deleted set (marked for deletion)",                    "marked_for_deletion"],
  ["Ready",         "Maintenance",  "power_shelf_maintenance_requested.operation == …",     "maintenance_requested"],
  ["Maintenance",   "Ready",        "BMC operation complete; controller clears request",    "operation_completed"],
  ["Maintenance",   "Error",        "BMC operation failed",                                 "operation_failed"],
  ["Error",         "Deleting",     "deleted set (marked for deletion)",                    "marked_for_deletion"],
  ["Deleting",      "(gone)",       "Final delete committed",                               "removed"],
] as const;

/** Edges that the specification does not draw, and why each is there all the same. */
const IN_USE = "a request that spares trays in use ends when one of them came into use before its turn";
// biome-ignore format: a table is read by its columns
const ADDED = [
  ["initializing",  "deleting",     "marked_for_deletion",    "a shelf that cannot be read can still be removed"],
  ["fetching_data", "deleting",     "marked_for_deletion",    "a shelf that cannot be read can still be removed"],
  ["configuring",   "deleting",     "marked_for_deletion",    "a shelf that cannot be read can still be removed"],
  ["ready",         STAY,           "came_into_use",        IN_USE],
  ["maintenance",   "error",        "operation_canceled",   "a canceled request mends nothing: a shelf that was in error is there again"],
  ["maintenance",   "ready",        "operation_canceled",   "an operator may cancel a request that is being carried out"],
  ["error",         STAY,           "came_into_use",        IN_USE],
  ["error",         "maintenance",  "maintenance_requested", "a fresh request is the operator's manual intervention"],
  ["*",             "(gone)",       "force_delete",         "AdminForceDeletePowerShelf removes the record at once, whatever it is doing"],
] as const;

const here = (word: string) => word.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
const rows: readonly Row<PowerShelf>[] = powerShelfLifecycle.transitions;
const added = (row: Row<PowerShelf>) => row[3]?.added;

describe("the table is that of the specification", () => {
  test("with its transitions, no more and no fewer, in its order", () => {
    const ours = rows.filter((row) => added(row) === undefined).map(([from, { name }, to]) => [from, to, name]);
    expect(ours).toEqual(SPECIFICATION.map(([from, to, , trigger]) => [here(from), here(to), trigger]));
  });

  test("and the edges added to it are these, each with its reason", () => {
    const ours = rows.filter((row) => added(row) !== undefined).map((row) => [row[0], row[2], row[1].name, added(row)]);
    expect(ours).toEqual(ADDED);
  });

  test("with its states, no more and no fewer", () => {
    const states = ["Initializing", "FetchingData", "Configuring", "Ready", "Maintenance", "Error", "Deleting"];
    expect(Object.keys(powerShelfLifecycle.states)).toEqual(states.map(here));
  });

  test("with the state in which a created shelf begins", () => {
    expect(powerShelfLifecycle.initial).toBe("initializing");
  });

  test.each([
    ["processed", "controller", false],
    ["data_fetched", "handler", false],
    ["configured", "handler", false],
    ["marked_for_deletion", "controller", false],
    ["maintenance_requested", "controller", false],
    ["operation_completed", "handler", false],
    ["operation_failed", "handler", true],
    ["removed", "handler", false],
    ["force_delete", "caller", false],
  ])("with %s made by the %s", (name, owner, failure) => {
    const triggers = rows.map(([, trigger]) => trigger).filter((trigger) => trigger.name === name);
    expect(triggers.length).toBeGreaterThan(0);
    for (const trigger of triggers) expect(trigger).toMatchObject({ owner, failure });
    expect(OWNERS).toContain(owner);
  });
});

describe("time", () => {
  test.each(["initializing", "fetching_data", "configuring", "maintenance", "deleting"] as const)(
    "%s is at work and may take 300 s",
    (state) => {
      expect(powerShelfLifecycle.states[state]).toMatchObject({ sla: seconds(300) });
      expect(powerShelfLifecycle.states[state]).not.toHaveProperty("rest");
    },
  );

  test.each(["ready", "error"] as const)("%s is at rest and may last for ever", (state) => {
    expect(powerShelfLifecycle.states[state]).toMatchObject({ rest: true });
    expect(powerShelfLifecycle.states[state]).not.toHaveProperty("sla");
  });

  test("maintenance ends by itself before it is shown as stuck, and it alone takes the shelf's claim", () => {
    const { deadline, sla } = powerShelfLifecycle.states.maintenance;
    expect(deadline).toBeGreaterThan(0);
    expect(deadline).toBeLessThan(sla ?? 0);
    const claiming = Object.entries(powerShelfLifecycle.states).filter(([, spec]) => "claims" in spec);
    expect(claiming.map(([name]) => name)).toEqual(["maintenance"]);
  });
});

const requested = (operation: MaintenanceRequest["operation"], id = "request-1"): MaintenanceRequest => ({
  id,
  operation,
  initiator: "alice (https://tracker/MAINT-123)",
  requestedAt: new Date("2026-01-02T03:04:05.678Z"),
});
const shelf = (name: string, change: Partial<PowerShelf> = {}): PowerShelf => ({
  id: parsePowerShelfId("ps100rs1", "id"),
  version: 4,
  state: { name },
  stateSince: new Date("2026-01-01T00:00:00Z"),
  basis: 1,
  stateVersion: 2,
  outcome: null,
  rackId: "rack-1",
  bmc: { mac: "02:00:5e:10:00:01", address: "127.1.0.1", port: 8443, scheme: "https", trust: "pin" },
  facts: {
    serial: "SN1",
    vendor: "Lite-On",
    model: "PS-1",
    bmcFirmware: null,
    certificateFingerprint: null,
    capacityWatts: null,
    voltage: null,
    powerState: null,
    powerSupplies: [],
    health: null,
    sensors: [],
    observedAt: null,
    deviceLog: [],
    deviceLogReadAt: null,
    commandedAt: null,
    cancelRequest: null,
  },
  deletedAt: null,
  maintenanceRequest: null,
  expectedId: null,
  hasEvents: false,
  ...change,
});
const arrived = (before: PowerShelf, move: Move): PowerShelf => ({
  ...before,
  outcome: null,
  state: { name: move.to, ...move.carried },
});

function moved(before: PowerShelf): Move {
  const decision = decide(powerShelfLifecycle, before);
  if (decision.kind !== "move") throw new Error("the controller made no move");
  return decision.move;
}

describe.each(["ready", "error"])("a request for maintenance of a shelf in %s", (state) => {
  test.each(MAINTENANCE_OPERATIONS)("to %s is carried into maintenance as it was made", (operation) => {
    expect(moved(shelf(state, { maintenanceRequest: requested(operation) }))).toMatchObject({
      to: "maintenance",
      carried: {
        operation,
        request: {
          id: "request-1",
          operation,
          initiator: "alice (https://tracker/MAINT-123)",
          requested_at: "2026-01-02T03:04:05.678Z",
        },
      },
    });
  });

  test("comes second to a deletion", () => {
    const both = shelf(state, { maintenanceRequest: requested("power_on"), deletedAt: new Date() });
    expect(moved(both).to).toBe("deleting");
  });
});

describe("the end of maintenance", () => {
  const before = shelf("ready", { maintenanceRequest: requested("power_off") });
  const inMaintenance = arrived(before, moved(before));
  const newer: PowerShelf = { ...inMaintenance, maintenanceRequest: requested("power_on", "request-2") };
  const completed = { owner: "handler", name: "operation_completed" } as const;

  test("in success ends the request that was carried in, and carries nothing on", () => {
    expect(follow(powerShelfLifecycle, inMaintenance, completed)).toMatchObject({
      to: "ready",
      carried: {},
      ends: [{ field: "maintenanceRequest", request: { id: "request-1" }, outcome: "completed" }],
    });
  });

  test("in failure ends it too, and the error says why", () => {
    expect(fail(powerShelfLifecycle, inMaintenance, { message: "the shelf refused" })).toMatchObject({
      to: "error",
      trigger: "operation_failed",
      carried: { cause: "the shelf refused" },
      ends: [
        { field: "maintenanceRequest", request: { id: "request-1" }, outcome: "failed", message: "the shelf refused" },
      ],
    });
  });

  test("never ends a newer request that came meanwhile", () => {
    expect(follow(powerShelfLifecycle, newer, completed)?.ends.map(({ request }) => request.id)).toEqual(["request-1"]);
    expect(fail(powerShelfLifecycle, newer, { message: "no" })?.ends.map(({ request }) => request.id)).toEqual([
      "request-1",
    ]);
  });

  test("is not hastened by a deletion: what was begun is seen through", () => {
    expect(decide(powerShelfLifecycle, { ...inMaintenance, deletedAt: new Date() })).toEqual({ kind: "handle" });
  });
});

describe("a shelf that goes", () => {
  test.each(["initializing", "fetching_data", "configuring", "ready", "error"])(
    "from %s because it is marked for deletion withdraws what was asked of it",
    (state) => {
      expect(moved(shelf(state, { deletedAt: new Date() }))).toMatchObject({
        to: "deleting",
        withdraws: ["maintenanceRequest"],
      });
    },
  );

  test("for good withdraws it too, whichever way", () => {
    for (const [state, owner, name] of [
      ["deleting", "handler", "removed"],
      ["maintenance", "caller", "force_delete"],
    ] as const)
      expect(follow(powerShelfLifecycle, shelf(state), { owner, name })).toMatchObject({
        gone: true,
        withdraws: ["maintenanceRequest"],
      });
  });
});

test("only maintenance can fail: every other state stays and tries again", () => {
  const failing = Object.keys(powerShelfLifecycle.states).filter((name) =>
    fail(powerShelfLifecycle, shelf(name), { message: "x" }),
  );
  expect(failing).toEqual(["maintenance"]);
});

describe("a shelf driven along every path of the table goes where the table says", () => {
  /** What must be true of a shelf for the controller to take a row, by the name of its guard. */
  const makeHold: Readonly<Record<string, (before: PowerShelf) => PowerShelf>> = {
    processed: (before) => before,
    marked_for_deletion: (before) => ({ ...before, deletedAt: new Date() }),
    maintenance_requested: (before) => ({ ...before, maintenanceRequest: requested("power_on") }),
    came_into_use: (before) => ({
      ...before,
      maintenanceRequest: requested("power_off"),
      outcome: { type: "waiting", reason: "in use: m-1", cause: { code: "in_use" } },
    }),
  };

  function take(before: PowerShelf, { row }: Step<PowerShelf>): Move | undefined {
    const [, trigger] = row;
    if (trigger.owner === "controller") {
      const prepare = makeHold[trigger.name];
      if (!prepare) throw new Error(`say in makeHold how ${trigger.name} comes to hold`);
      return moved(prepare({ ...before, deletedAt: null, maintenanceRequest: null }));
    }
    if (trigger.failure) return fail(powerShelfLifecycle, before, { message: "it broke" });
    return follow(powerShelfLifecycle, from(before, row), { owner: trigger.owner, name: trigger.name });
  }

  /** A cancel leads back to where the shelf was. */
  function from(before: PowerShelf, [, { name }, to]: Row<PowerShelf>): PowerShelf {
    if (name !== "operation_canceled") return before;
    const { error: _, ...state } = before.state;
    return { ...before, state: to === "error" ? { ...state, error: { cause: "it broke before" } } : state };
  }

  const paths = pathsThrough<PowerShelf, string>(powerShelfLifecycle);
  test.each(paths.map((path) => [path.map(({ row }) => row[1].name).join(", "), path] as const))("%s", (_, path) => {
    let current = shelf(powerShelfLifecycle.initial);
    for (const step of path) {
      const move = take(current, step);
      expect(move).toMatchObject({ from: step.from, to: step.to ?? step.from, gone: step.to === undefined });
      if (move) current = arrived(current, move);
    }
  });
});
