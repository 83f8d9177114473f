import { join } from "node:path";
import { expect, test } from "vitest";
import type { ServiceDeps } from "../../src/services/call/deps.ts";
import { createImage } from "../../src/services/catalog/images.ts";
import { bootNode } from "../../src/services/install/boot/boot.ts";
import { applyReports } from "../../src/services/install/reports.ts";
import { createWorkflow } from "../../src/services/install/workflows.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { eventually } from "../support/eventually.ts";
import type { SimulatedMachine } from "../support/machine-site.ts";
import { KillLane } from "../support/processes/kill-lane.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import type { Position } from "../support/processes/run-victim.ts";
import { tester } from "../support/run-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";
import { effectsSince, type StepOnce } from "../support/step-kinds.ts";

/**
 * Kill -9 wherever a run is that installs over the network, from the commit on that announces its action and orders the install:
 * another replica finishes it, the machine is restarted into the network once, and its install tells the same story.
 */
const POSITIONS: ReadonlySet<Position> = new Set(["RUNNING", "announced", "acted"]);
const WORK: StepOnce = {
  kind: "repave",
  step: { name: "repave", kind: "repave", payload: { image_ref: "net" }, timeoutSeconds: 3_600, maxRetries: 0 },
  speed: 400,
  effects: {
    boot_override_changes: 1,
    force_restart_commands: 1,
    resets: 1,
    installs_started: 1,
    installs: 1,
    boots: 1,
  },
};
const DIGEST = `sha256:${"0".repeat(64)}`;

let bench: ProcessBench;
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

test("replicas that install over the network can die at any fail point: nothing is lost, doubled or half done", async ({
  onTestFinished,
}) => {
  const lane = await KillLane.open(bench, WORK);
  onTestFinished(() => lane.close());
  const { db } = lane.database;
  const secrets = openSecretStore({ keyFile: join(bench.directory, "secret-key-firmware") });
  const deps: ServiceDeps = { db, stores: allStores, secrets, maxFindByIds: 100 };
  await createWorkflow(deps, tester, {
    id: "ubuntu",
    name: "Ubuntu",
    description: "",
    osFamily: "linux",
    architecture: "x86_64",
    bootMode: "any",
    boot: { method: "kernel", kernel_url: "/files/vmlinuz", cmdline: "" },
    steps: [],
    nextState: "installed",
  });
  await createImage(deps, tester, {
    name: "net",
    kind: "netboot",
    location: "ubuntu",
    digest: DIGEST,
    successProof: "token",
  });
  const hidden = await hideSystems(lane);
  const firmware = new AbortController();
  const playing = playFirmware(deps, lane, hidden, firmware.signal);
  onTestFinished(async () => {
    firmware.abort();
    await playing;
  });

  const places = (await lane.findPlaces()).filter(({ position }) => POSITIONS.has(position));
  const inTheOrder = places.filter(({ position }) => position === "RUNNING").map(({ failPoint }) => failPoint);
  expect(inTheOrder).toEqual(
    expect.arrayContaining(["create:inserted", "transitions:journaled", "changes:written", "install-orders:placed"]),
  );
  for (const place of places) await lane.killAt(place, place.position !== "acted");
  await lane.finishAll();

  expect(await db.query("select * from claims")).toEqual([]);
  for (const { place, machineId, before } of lane.killed) {
    const where = `${place.failPoint} (${place.position})`;
    const run = await lane.run(machineId);
    expect(run, `${where}: ${run?.error?.message}`).toMatchObject({ state: "SUCCEEDED", steps: [{ retryCount: 0 }] });
    expect(effectsSince(before, await lane.truth(machineId)), where).toEqual(WORK.effects);
    const [install] = await db.query("select state, facts ->> 'orderedBy' as run from installs where id = $1", [
      machineId,
    ]);
    expect(install, where).toEqual({ state: "active", run: null });
    const moves = await db.query<{ move: string }>(
      `select from_state || ' → ' || to_state as move from journal
        where kind = 'install' and id = $1 and type = 'transition' and from_state <> to_state order by seq`,
      [machineId],
    );
    expect(
      moves.map(({ move }) => move),
      where,
    ).toEqual(["discovered → pending", "pending → installing", "installing → installed", "installed → active"]);
  }
}, 600_000);

/**
 * No system is reached before its machine was installed: one that came up while we have not yet played its firmware would rightly be
 * said not to have booted from the network. By machine, what ends it.
 */
async function hideSystems({ simulator }: KillLane): Promise<ReadonlyMap<string, () => Promise<void>>> {
  const machines = await simulator.call<readonly SimulatedMachine[]>("GET", "/inventory/machines");
  const hide = async ({ machine_id: device }: SimulatedMachine) => {
    const { id } = await simulator.call<{ id: string }>("POST", "/faults", { device, fault: { type: "ssh_refused" } });
    return [device, () => simulator.call<void>("DELETE", `/faults/${id}`)] as const;
  };
  return new Map(await Promise.all(machines.map(hide)));
}

/** Machines that have gone down to boot from the network ask for their scripts and report, as their firmware and installer would. */
async function playFirmware(
  deps: ServiceDeps,
  lane: KillLane,
  hidden: ReadonlyMap<string, () => Promise<void>>,
  stop: AbortSignal,
): Promise<void> {
  const ordered = "select id, mac from installs where state = 'pending' and facts ->> 'orderedBy' is not null";
  const rules = { autoRegister: false, defaultGroupId: null, eraser: null };
  const play = async () => {
    for (const { id, mac } of await deps.db.query<{ id: string; mac: string }>(ordered)) {
      if (((await lane.truth(id)).effects.installs_started ?? 0) === 0) continue;
      const script = await bootNode(deps, rules, { mac, hardware: {}, server: "http://192.0.2.1", address: null });
      const token = /millwright\.token=(\S+)/.exec(script)?.[1];
      for (const status of ["started", "complete"] as const)
        await applyReports(deps, { requireTokens: true }, [{ report: { mac, status }, address: null, token }]);
      await hidden.get(id)?.();
    }
    return stop.aborted;
  };
  await eventually(play, { what: "the test is over", within: 600_000 });
}
