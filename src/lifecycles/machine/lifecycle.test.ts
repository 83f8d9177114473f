import { describe, expect, test } from "vitest";
import { pathsThrough } from "../../../test/support/lifecycle-paths.ts";
import { NOTHING_KNOWN } from "../../../test/support/unknown-machine.ts";
import { follow, followOrRefuse, type Move } from "../../kernel/decide.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import type { JsonObject, Row } from "../../kernel/lifecycle.ts";
import { machineLifecycle, runStartedData } from "./lifecycle.ts";
import { MACHINE_PHASES, type Machine, PHASES_AFTER_RUN } from "./machine.ts";

/** The phase table of the specification's decisions, row by row: from, who and what, to, and the condition where there is one. */
// biome-ignore format: a table is read by its columns
const SPECIFICATION = [
  ["FACTORY_READY", "caller", "accept",            "READY",         undefined],
  ["FACTORY_READY", "other",  "inspected",         "READY",         undefined],
  ["FACTORY_READY", "other",  "onboarded",         "READY",         undefined],
  ["FACTORY_READY", "other",  "expired",           "(gone)",        undefined],
  ["READY",         "caller", "enter_maintenance", "MAINTENANCE",   undefined],
  ["IN_SERVICE",    "caller", "enter_maintenance", "MAINTENANCE",   undefined],
  ["MAINTENANCE",   "caller", "exit_maintenance",  "READY",         "needsNobody"],
  ["*",             "other",  "run_started",       "PROVISIONING",  undefined],
  ["PROVISIONING",  "other",  "run_succeeded",     "IN_SERVICE",    "goesInService"],
  ["PROVISIONING",  "other",  "run_succeeded",     "READY",         "becomesReady"],
  ["PROVISIONING",  "other",  "run_succeeded",     "RMA",           "goesBackToVendor"],
  ["PROVISIONING",  "other",  "run_succeeded",     "FACTORY_READY", "staysAsFromFactory"],
  ["PROVISIONING",  "other",  "run_succeeded",     "MAINTENANCE",   "staysInMaintenance"],
  ["PROVISIONING",  "other",  "run_failed",        "MAINTENANCE",   undefined],
  ["PROVISIONING",  "other",  "run_canceled",      "MAINTENANCE",   undefined],
  ["RMA",           "caller", "return",            "FACTORY_READY", undefined],
  ["*",             "caller", "retire",            "RETIRED",       "hasNoActiveRun"],
] as const;

const rows: readonly Row<Machine>[] = machineLifecycle.transitions;

const machine = (state: Machine["state"], change: Partial<Machine> = {}): Machine => ({
  id: parseMachineId("m-1", "id"),
  version: 3,
  state,
  stateSince: new Date("2026-01-01T00:00:00Z"),
  basis: 1,
  stateVersion: 2,
  outcome: null,
  labels: {},
  spec: {
    provider: "datacenter",
    serial: null,
    macs: [],
    rack: null,
    slot: null,
    location: null,
    customerId: null,
    targetCluster: null,
    ssh: null,
    bmc: null,
  },
  facts: NOTHING_KNOWN,
  conditions: [],
  activeRunId: null,
  ...change,
});
const caused = (before: Machine, name: string, data?: JsonObject): Move | undefined =>
  follow(machineLifecycle, before, { owner: "other", name, data });
const askedOf = (before: Machine, name: string): Move =>
  followOrRefuse(machineLifecycle, before, { owner: "caller", name });

describe("the table is that of the specification", () => {
  test("with its rows, no more and no fewer, in its order", () => {
    expect(
      rows.map(([from, { owner, name }, to, options]) => [from, owner, name, to, options?.provided?.name]),
    ).toEqual(SPECIFICATION);
  });

  test("with its phases, in its spelling and order, beginning with FACTORY_READY", () => {
    expect(Object.keys(machineLifecycle.states)).toEqual([...MACHINE_PHASES]);
    expect(machineLifecycle.initial).toBe("FACTORY_READY");
  });

  test("in which only PROVISIONING is at work, for as long as its SLA says, and only RETIRED is for good", () => {
    const { PROVISIONING, RETIRED, ...others } = machineLifecycle.states;
    expect(PROVISIONING.sla).toBeGreaterThan(0);
    expect(PROVISIONING).not.toHaveProperty("rest");
    expect(RETIRED).toMatchObject({ terminal: true });
    for (const spec of Object.values(others)) expect(spec).toMatchObject({ rest: true });
  });

  test("in which every phase but RETIRED has a command or a run that leads out of it", () => {
    const left = new Set(pathsThrough(machineLifecycle).flatMap((path) => path.map(({ from }) => from)));
    expect([...left].sort()).toEqual(MACHINE_PHASES.filter((phase) => phase !== "RETIRED").toSorted());
  });
});

const restingPhases = MACHINE_PHASES.filter((phase) => phase !== "PROVISIONING" && phase !== "RETIRED");

const RUN = { run: "run-1", job: "job-1" };

describe("a run", () => {
  test.each(restingPhases)("that starts on a machine in %s makes it PROVISIONING and remembers that phase", (phase) => {
    expect(caused(machine({ name: phase }), "run_started", runStartedData(RUN, null))).toMatchObject({
      to: "PROVISIONING",
      carried: { ...RUN, before: phase, on_success: phase },
    });
  });

  test.each(restingPhases)("with neither repave, join nor rma returns a machine to %s", (phase) => {
    const started = caused(machine({ name: phase }), "run_started", runStartedData(RUN, null));
    const during = machine({ name: "PROVISIONING", ...started?.carried });
    expect(caused(during, "run_succeeded")).toMatchObject({ to: phase, carried: {} });
  });

  test.each(PHASES_AFTER_RUN)("that leads to %s does so from wherever it started", (target) => {
    for (const phase of restingPhases) {
      const started = caused(machine({ name: phase }), "run_started", runStartedData(RUN, target));
      expect(started?.carried).toEqual({ ...RUN, before: phase, on_success: target });
      expect(caused(machine({ name: "PROVISIONING", ...started?.carried }), "run_succeeded")?.to).toBe(target);
    }
  });

  test.each(["run_failed", "run_canceled"])("that ends with %s leaves the machine in MAINTENANCE", (cause) => {
    const during = machine({ name: "PROVISIONING", run: "run-1", before: "IN_SERVICE", on_success: "IN_SERVICE" });
    expect(caused(during, cause)?.to).toBe("MAINTENANCE");
  });

  test.each(["run_succeeded", "run_failed", "run_canceled"])(
    "within a maintenance that somebody asked for does not end what was wanted of it: %s",
    (cause) => {
      const asked = askedOf(machine({ name: "IN_SERVICE" }), "enter_maintenance");
      const started = caused(
        machine({ name: "MAINTENANCE", ...asked.carried }),
        "run_started",
        runStartedData(RUN, null),
      );
      const during = machine({ name: "PROVISIONING", ...started?.carried });
      expect(caused(during, cause)).toMatchObject({ to: "MAINTENANCE", carried: { drain: true } });
    },
  );

  describe.each(["run_failed", "run_canceled"])("of a job of which an attempt ended with %s", (cause) => {
    const happenings = (...causes: readonly string[]) =>
      causes.reduce(
        (before, each) => {
          const data = each === "run_started" ? runStartedData(RUN, null) : undefined;
          const move = caused(before, each, data);
          return machine({ name: move?.to ?? "", ...move?.carried });
        },
        machine({ name: "IN_SERVICE" }),
      );

    test("returns the machine to where the job found it, however many attempts it took", () => {
      expect(happenings("run_started", cause, "run_started", "run_succeeded").state.name).toBe("IN_SERVICE");
      expect(happenings("run_started", cause, "run_started", cause, "run_started", "run_succeeded").state.name).toBe(
        "IN_SERVICE",
      );
    });

    test("leaves the machine in MAINTENANCE for a run of any other job", () => {
      const other = caused(
        happenings("run_started", cause),
        "run_started",
        runStartedData({ run: "r-2", job: "j-2" }, null),
      );
      expect(other?.carried).toMatchObject({ before: "MAINTENANCE", on_success: "MAINTENANCE" });
    });
  });

  test("starts on no machine that is RETIRED, or that another run is changing", () => {
    expect(caused(machine({ name: "RETIRED" }), "run_started", runStartedData(RUN, null))).toBeUndefined();
    expect(caused(machine({ name: "PROVISIONING" }), "run_started", runStartedData(RUN, null))).toBeUndefined();
  });
});

describe("people", () => {
  const broken = {
    conditions: [
      {
        type: "NeedsIntervention",
        status: true,
        reason: "RunFailed",
        message: "",
        lastTransition: new Date("2026-01-01T00:00:00Z"),
      },
    ],
  } as const;

  test("end maintenance of a machine that needs nobody, and not of one that does", () => {
    expect(askedOf(machine({ name: "MAINTENANCE" }), "exit_maintenance").to).toBe("READY");
    expect(() => askedOf(machine({ name: "MAINTENANCE" }, broken), "exit_maintenance")).toThrow(
      expect.objectContaining({ kind: "failed_precondition" }),
    );
  });

  test.each(MACHINE_PHASES.filter((phase) => phase !== "RETIRED"))(
    "retire a machine in %s unless a run is active",
    (phase) => {
      expect(askedOf(machine({ name: phase }), "retire").to).toBe("RETIRED");
      expect(() => askedOf(machine({ name: phase }, { activeRunId: "run-1" }), "retire")).toThrow(
        expect.objectContaining({ kind: "failed_precondition" }),
      );
    },
  );

  test.each(["accept", "enter_maintenance", "exit_maintenance", "return", "retire"])(
    "cannot %s a machine that is RETIRED",
    (verb) => {
      expect(() => askedOf(machine({ name: "RETIRED" }), verb)).toThrow("machine m-1 is RETIRED");
    },
  );
});
