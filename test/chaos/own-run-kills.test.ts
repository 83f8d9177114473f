import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serverSteps } from "../../src/runs/steps/index.ts";
import { fleetDecommission } from "../../src/runs/workflows/fleet/fleet-decommission.ts";
import { fleetOnboarding } from "../../src/runs/workflows/fleet/fleet-onboarding.ts";
import { startRuns } from "../../src/services/run/many/start-runs.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { BATCH, type BatchVictimOrder, type Death } from "../support/processes/batch-victim.ts";
import { KillLane } from "../support/processes/kill-lane.ts";
import { letLeasesEnd } from "../support/processes/killed-servers.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { openRunReplica } from "../support/processes/run-replica.ts";
import { startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord, tester } from "../support/run-bench.ts";
import { DEVICE_STEP_KINDS, effectsSince, OWN_STEP_KINDS, STEP_KINDS } from "../support/step-kinds.ts";

/**
 * Kill -9 in runs that have a call of their own: `machine power`, `machine boot-device` and `run start --filter`. The passes of the engine
 * are those of run-kills.test.ts, so that only what these kinds do themselves is gone through.
 */
const POSITIONS: readonly string[] = ["intent noted", "announced", "acted"];
const FAIL_POINTS: readonly string[] = ["controller:handled", "committer:inside", "committer:after"];

let bench: ProcessBench;
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

/** In rack-kills.test.ts, as parts of the maintenance of a rack. */
const KILLED_WITH_RACKS = [
  ...["rack_firmware", "rack_power", "configure_fabric", "validate_devices", "validate_fabric"],
  ...["activate_firmware", "validate_device"],
];
/** In rack-manager-kills.test.ts. */
const KILLED_WITH_MANAGERS = [
  ...["submit_firmware", "follow_firmware_job"],
  ...["configure_managed_fabric", "validate_managed_fabric"],
];

/** In fleet/onboarding-kills.test.ts and fleet/decommission-kills.test.ts, as stages of the two jobs of a node. */
const KILLED_WITH_NODES = new Set(
  [fleetOnboarding, fleetDecommission].flatMap(({ stages }) => stages.map(({ name, step = name }) => step)),
);

test("every kind of step is killed here, in run-kills, in rack-kills, in rack-manager-kills or with a node", () => {
  const killed = [...STEP_KINDS, ...OWN_STEP_KINDS, ...DEVICE_STEP_KINDS].map(({ kind }) => kind);
  const named = [
    ...killed,
    "batch",
    "onboard_batch", // in fleet/batch-kills.test.ts
    ...KILLED_WITH_RACKS,
    ...KILLED_WITH_MANAGERS,
    ...KILLED_WITH_NODES,
  ];
  expect(named.toSorted()).toEqual([...serverSteps.keys()].toSorted());
});

describe("replicas that carry out", { concurrent: true, timeout: 240_000 }, () => {
  test.for(OWN_STEP_KINDS.map((kind) => [kind.kind, kind] as const))(
    "%s can die around its device: nothing is lost, doubled or half done",
    async ([, kind], { onTestFinished, expect }) => {
      const lane = await KillLane.open(bench, kind);
      onTestFinished(() => lane.close());
      const places = (await lane.findPlaces()).filter(
        ({ position, failPoint }) => POSITIONS.includes(position) && FAIL_POINTS.includes(failPoint),
      );
      for (const place of places) await lane.killAt(place, false);
      await lane.finishAll();
      expect(lane.killed.length).toBeGreaterThanOrEqual(3);
      expect(await lane.database.db.query("select * from claims")).toEqual([]);
      for (const killed of lane.killed) {
        const where = `${killed.place.failPoint} (${killed.place.position})`;
        const run = await lane.run(killed.machineId);
        expect(run, `${where}: ${run?.error?.message}`).toMatchObject({
          state: "SUCCEEDED",
          steps: [{ name: kind.step.name, state: "SUCCEEDED", retryCount: 0 }],
        });
        expect(effectsSince(killed.before, await lane.truth(killed.machineId)), where).toEqual(kind.effects);
      }
    },
  );

  test.for(DEVICE_STEP_KINDS.map((kind) => [kind.kind, kind] as const))(
    "%s can die around its device: the device is told once, and flashes once",
    async ([name, kind], { onTestFinished, expect }) => {
      const lane = await KillLane.open(bench, kind);
      onTestFinished(() => lane.close());
      const places = (await lane.findPlaces()).filter(
        ({ position, failPoint }) =>
          POSITIONS.includes(position) && [...FAIL_POINTS, "stream:chunk-sent"].includes(failPoint),
      );
      for (const place of places) await lane.killAt(place, false);
      await lane.finishAll();
      expect(lane.killed.length).toBeGreaterThanOrEqual(3);
      for (const killed of lane.killed) {
        const where = `${killed.place.failPoint} (${killed.place.position})`;
        const run = await lane.run(killed.machineId);
        expect(run, `${where}: ${run?.error?.message}`).toMatchObject({ state: "SUCCEEDED" });
        const truth = (await lane.truth(killed.machineId)) as MachineTruth & { readonly flashes: readonly unknown[] };
        expect(effectsSince(killed.before, truth), where).toEqual(kind.effects);
        expect(truth.flashes, where).toHaveLength(name === "update_firmware" ? 1 : 0);
      }
    },
  );

  /** One after the other, in the course of one batch. */
  const DEATHS: readonly Death[] = [
    { failPoint: "create:inserted", nth: 3 }, // some of the runs of a pass are there, and the pass is not
    { failPoint: "controller:handled", nth: 4 },
    { failPoint: "committer:inside", nth: 6 },
    { failPoint: "committer:after", nth: 8 },
    { failPoint: "run-logs:appended", nth: 5 },
  ];

  test("a batch can die again and again: each machine gets one run, and the sums are right", async ({
    onTestFinished,
    expect,
  }) => {
    const simulator = await startSimulatorProcess(bench, { name: "batch", site: "racks=1", seed: 3, speed: 400 });
    const database = await createTestDatabase();
    onTestFinished(async () => {
      simulator.process.signal("SIGTERM");
      await simulator.process.exited;
      await database.drop();
    });
    const { db, url } = database;
    const keyFile = join(bench.directory, "secret-key-batch");
    const deps = { db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 };
    const ids = (await putSiteOnRecord(deps, simulator.call)).map(({ machine_id }) => machine_id);
    const truth = (id: string) => simulator.call<MachineTruth>("GET", `/devices/${id}`);
    const before = new Map(await Promise.all(ids.map(async (id) => [id, await truth(id)] as const)));
    const filter = "provider=datacenter";
    for (const death of DEATHS) {
      const order: BatchVictimOrder = { url, keyFile, instance: `dies at ${death.failPoint}`, filter, death };
      const victim = await startProgram(bench, { program: "batch-victim.ts", args: [JSON.stringify(order)] });
      expect(await victim.exited, victim.transcript()).toEqual({ code: null, signal: "SIGKILL" });
      await letLeasesEnd(database);
    }
    const successor = openRunReplica({ url, keyFile, instance: "successor" });
    try {
      const { id } = await startRuns(successor.deps, tester, { ...BATCH, filter });
      await successor.work();
      const run = () => db.query("select state, facts #>> '{steps,0,message}' as sum from runs where id = $1", [id]);
      await eventually(
        async () => (await db.query("select 1 from runs where state in ('PENDING', 'RUNNING')")).length === 0,
        {
          what: "all runs have ended",
          within: 90_000,
          seen: async () => JSON.stringify(await run()),
        },
      );
      expect(await run()).toEqual([{ state: "SUCCEEDED", sum: `${ids.length} of ${ids.length} succeeded` }]);
      const children = await db.query<{ target_id: string; state: string }>(
        "select target_id, state from runs where parent_run_id = $1 order by target_id",
        [id],
      );
      expect(children).toEqual(ids.toSorted().map((target_id) => ({ target_id, state: "SUCCEEDED" })));
      expect(await db.query("select count(*)::int as runs from runs")).toEqual([{ runs: ids.length + 1 }]);
      expect(await db.query("select * from claims")).toEqual([]);
      const [rebooted] = STEP_KINDS.filter(({ kind }) => kind === "reboot");
      for (const [machineId, seen] of before) {
        const { graceful_restart_commands, ...counted } = effectsSince(seen, await truth(machineId));
        expect({ graceful_restart_commands, ...counted }, machineId).toEqual(rebooted?.effects);
      }
    } finally {
      await successor.stop();
    }
  });
});
