import { describe, expect, test } from "vitest";
import { wholeRack as rack, aRequest as request } from "../../../test/support/racks/whole-rack.ts";
import { decide, fail, follow } from "../../kernel/decide.ts";
import type { Row } from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { rackLifecycle } from "./lifecycle.ts";
import { topologyOf } from "./members.ts";
import type { Rack } from "./rack.ts";

/** The table of RackState in the specification, as the decisions amend it: row by row, each with the trigger that stands for its condition. */
// biome-ignore format: a table is read by its columns
const SPECIFICATION = [
  // from          to             trigger                  condition in the specification
  ["created",     "deleting",    "marked_for_deletion",   "deleted set: any except Deleting"],
  ["created",     "discovering", "inventory_complete",    "all three counts ≥ expected"],
  ["discovering", "deleting",    "marked_for_deletion",   "deleted set"],
  ["discovering", "maintenance", "maintenance_begun",     "all ready → FirmwareUpgrade(Start)"],
  ["maintenance", "validating",  "run_succeeded",         "Completed → Validating(Pending)"],
  ["maintenance", "error",       "run_failed",            "an activity failed"],
  ["maintenance", "error",       "run_canceled",          "terminated"],
  ["validating",  "ready",       "validation_succeeded",  "Validated"],
  ["validating",  "error",       "validation_failed",     "a device does not pass"],
  ["validating",  "error",       "validation_canceled",   "terminated"],
  ["ready",       "deleting",    "marked_for_deletion",   "deleted set"],
  ["ready",       "discovering", "topology_changed",      "1st: topology_changed"],
  ["ready",       "maintenance", "maintenance_begun",     "2nd: reprovision_requested"],
  ["ready",       "maintenance", "maintenance_begun",     "3rd: maintenance_requested"],
  ["ready",       "error",       "component_failed",      "4th: a device in error"],
  ["error",       "deleting",    "marked_for_deletion",   "deleted set"],
  ["error",       "maintenance", "maintenance_begun",     "maintenance_requested set"],
  ["error",       "ready",       "components_recovered",  "only for errors of components"],
] as const;

/** Edges that the specification does not draw. */
// biome-ignore format: a table is read by its columns
const ADDED = [
  ["discovering", "discovering", "topology_changed"],
  ["discovering", "error",       "devices_missing"],
  ["maintenance", "(stay)",      "activity_changed"],
  ["maintenance", "deleting",    "run_succeeded"],
  ["maintenance", "deleting",    "run_failed"],
  ["maintenance", "deleting",    "run_canceled"],
  ["maintenance", "error",       "run_lost"],
  ["validating",  "(stay)",      "validation_started"],
  ["validating",  "deleting",    "validation_succeeded"],
  ["validating",  "deleting",    "validation_failed"],
  ["validating",  "deleting",    "validation_canceled"],
  ["validating",  "error",       "run_lost"],
  ["ready",       "(stay)",      "request_expired"],
  ["ready",       "(stay)",      "request_refused"],
  ["error",       "(stay)",      "request_expired"],
  ["error",       "(stay)",      "request_refused"],
  ["error",       "discovering", "discovery_complete"],
  ["error",       "discovering", "clear_error"],
  ["error",       "ready",       "clear_error"],
  ["deleting",    "(gone)",      "removed"],
  ["*",           "(stay)",      "overlook_failure"],
  ["*",           "(gone)",      "force_delete"],
] as const;

const rows: readonly Row<Rack>[] = rackLifecycle.transitions;
const edgeOf = ([from, { name }, to]: Row<Rack>) => [from, to, name];

const broken = { switches: [{ id: "sw1", state: "error", trayIndex: 0, hasOs: true, unprovenRun: null }] };
const moved = (decided: ReturnType<typeof decide>) =>
  decided.kind === "move" ? `${decided.move.to} by ${decided.move.trigger}` : "handled";

describe("the table of a rack", () => {
  test("has the transitions of the specification, no more and no fewer", () => {
    const drawn = rows.filter(([, , , options]) => options?.added === undefined).map(edgeOf);
    expect(drawn).toEqual(SPECIFICATION.map(([from, to, trigger]) => [from, to, trigger]));
  });

  test("and these edges besides, each with its reason", () => {
    const added = rows.filter(([, , , options]) => options?.added !== undefined).map(edgeOf);
    expect(added.toSorted()).toEqual(ADDED.map((row) => [...row]).toSorted());
  });

  test("has an SLA in every state at work, and claims while a run works on the rack", () => {
    for (const [name, spec] of Object.entries(rackLifecycle.states))
      expect("rest" in spec || "sla" in spec, name).toBe(true);
    const claiming = Object.entries(rackLifecycle.states).filter(([, spec]) => "claims" in spec);
    expect(claiming.map(([name]) => name)).toEqual(["maintenance", "validating"]);
  });
});

describe("what a ready rack does first", () => {
  const asked = { maintenanceRequest: request("r1"), reprovisionRequest: request("r2") };
  const other = { facts: { topology: "another", workSet: null, hasValidated: true, failedByItself: false } };

  test("it is deleted, before all else", () => {
    expect(moved(decide(rackLifecycle, rack("ready", { ...asked, ...other, deletedAt: new Date(0) })))).toBe(
      "deleting by marked_for_deletion",
    );
  });

  test("a changed topology comes before reprovision, maintenance and a failed device", () => {
    expect(moved(decide(rackLifecycle, rack("ready", { ...asked, ...other, ...broken })))).toBe(
      "discovering by topology_changed",
    );
  });

  test("a request comes before a failed device, and reprovision supersedes a pending maintenance", () => {
    expect(moved(decide(rackLifecycle, rack("ready", { ...asked, ...broken })))).toBe("handled");
    const begun = {
      owner: "handler",
      name: "maintenance_begun",
      data: { trigger: "reprovision", run: "run-1" },
    } as const;
    expect(follow(rackLifecycle, rack("ready", asked), begun)).toMatchObject({
      to: "maintenance",
      supersedes: ["maintenanceRequest"],
      carried: { trigger: "reprovision", run: "run-1", activity: "firmware_upgrade", phase: "start" },
    });
  });

  test("a failed device comes last, and only while nothing is requested", () => {
    expect(moved(decide(rackLifecycle, rack("ready", broken)))).toBe("error by component_failed");
    const recovered = rack("error", {}, { origin: "component" });
    expect(moved(decide(rackLifecycle, recovered))).toBe("ready by components_recovered");
    expect(moved(decide(rackLifecycle, rack("error", {}, { origin: "activity" })))).toBe("handled");
  });
});

describe("a request", () => {
  const onDemand = (change: Partial<Rack> = {}) =>
    rack(
      "maintenance",
      { maintenanceRequest: request("r1"), ...change },
      { trigger: "on_demand", run: "run-1", request: { id: "r1" } },
    );

  test("begins with the firmware upgrade, and its lists of devices stay out of the history", () => {
    const begun = {
      owner: "handler",
      name: "maintenance_begun",
      data: { trigger: "on_demand", run: "run-1" },
    } as const;
    const move = follow(rackLifecycle, rack("error", { maintenanceRequest: request("r1") }), begun);
    expect(move?.carried).toEqual({
      trigger: "on_demand",
      run: "run-1",
      request: { id: "r1", initiator: "pat", requested_at: "2026-01-01T00:00:00Z" },
      activity: "firmware_upgrade",
      phase: "start",
    });
    expect(move?.supersedes).toBeUndefined();
  });

  test("ends with its run: completed, or failed in the same write that leads to error, so that nothing loops", () => {
    const ends = (name: string) => follow(rackLifecycle, onDemand(), { owner: "other", name, message: "why" });
    expect(ends("run_succeeded")).toMatchObject({ to: "validating", ends: [{ outcome: "completed" }] });
    for (const name of ["run_failed", "run_canceled"])
      expect(ends(name)).toMatchObject({
        to: "error",
        ends: [{ field: "maintenanceRequest", outcome: "failed" }],
        carried: { cause: "why", origin: "activity" },
      });
    const error = rack("error", {}, { origin: "activity" });
    expect(decide(rackLifecycle, error).kind).toBe("handle");
    expect(fail(rackLifecycle, onDemand(), { message: "lost" })).toMatchObject({
      to: "error",
      ends: [{ outcome: "failed" }],
    });
  });

  test("of another kind is not ended with it", () => {
    const move = follow(rackLifecycle, rack("maintenance", {}, { trigger: "ingestion", run: "run-1" }), {
      owner: "other",
      name: "run_failed",
    });
    expect(move?.ends).toEqual([]);
  });

  test("expires where its set has waited too long, and only its own", () => {
    const outcome = { type: "waiting", reason: "waiting for run r", barExpired: true } as const;
    const late = { maintenanceRequest: request("r1"), outcome };
    expect(decide(rackLifecycle, rack("ready", late))).toMatchObject({ move: { expires: ["maintenanceRequest"] } });
    expect(moved(decide(rackLifecycle, rack("ready", { ...late, reprovisionRequest: request("r2") })))).toBe("handled");
    const inError = rack("error", { ...late, reprovisionRequest: request("r2") }, { origin: "activity", cause: "x" });
    expect(decide(rackLifecycle, inError)).toMatchObject({
      move: { to: "error", carried: { origin: "activity", cause: "x" } },
    });
  });

  test("leads to deleting where the rack is to go", () => {
    for (const name of ["run_succeeded", "run_failed", "run_canceled"])
      expect(follow(rackLifecycle, onDemand({ deletedAt: new Date(0) }), { owner: "other", name })?.to).toBe(
        "deleting",
      );
  });
});

describe("discovery", () => {
  test("waits for a profile and for every device that it names", () => {
    expect(moved(decide(rackLifecycle, rack("created", { profile: null })))).toBe("handled");
    expect(moved(decide(rackLifecycle, rack("created", { switches: [] })))).toBe("handled");
    expect(moved(decide(rackLifecycle, rack("created")))).toBe("discovering by inventory_complete");
  });

  test("is entered again, with a new entry of the history, when a device comes or goes", () => {
    const before = rack("discovering");
    const after = { ...before, trays: [] };
    const decided = decide(rackLifecycle, after);
    expect(moved(decided)).toBe("discovering by topology_changed");
    expect(decided.kind === "move" && decided.move.carried.topology).not.toBe(before.facts.topology);
  });

  test("has a deadline, after which the rack is in error until it is whole", () => {
    expect(rackLifecycle.states.discovering.deadline).toBe(minutes(30));
    const error = rack(
      "error",
      { switches: [{ id: "sw1", state: "created", trayIndex: null, hasOs: false, unprovenRun: null }] },
      { origin: "discovery" },
    );
    expect(moved(decide(rackLifecycle, error))).toBe("handled");
    expect(moved(decide(rackLifecycle, rack("error", {}, { origin: "discovery" })))).toBe(
      "discovering by discovery_complete",
    );
  });

  test("is what a cleared error leads to, unless the rack was validated before", () => {
    const clear = { owner: "caller", name: "clear_error" } as const;
    expect(follow(rackLifecycle, rack("error", {}, { origin: "activity" }), clear)?.to).toBe("ready");
    const never = rack(
      "error",
      { facts: { topology: null, workSet: null, hasValidated: false, failedByItself: false } },
      { origin: "activity" },
    );
    expect(follow(rackLifecycle, never, clear)?.to).toBe("discovering");
  });

  test("goes by devices and profile alone, and not by a label, a state or a slot", () => {
    const one = rack("ready");
    const [tray] = one.trays;
    if (!tray) throw new Error("it has a tray");
    expect(topologyOf({ ...one, trays: [{ ...tray, slot: "7", ready: false }] })).toBe(topologyOf(one));
    expect(topologyOf({ ...one, profileId: "large" })).not.toBe(topologyOf(one));
  });
});
