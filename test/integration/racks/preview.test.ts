import { createHash } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import type { StartRackMaintenance } from "../../../src/services/rack/maintenance.ts";
import { startRackMaintenance } from "../../../src/services/rack/maintenance.ts";
import { previewRackMaintenance } from "../../../src/services/rack/preview.ts";
import { listRuns } from "../../../src/store/run/runs.ts";
import { eventually } from "../../support/eventually.ts";
import { CHECKED, IN_USE, rackBench } from "../../support/racks/rack-bench.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ArtifactServer, startArtifactServer } from "../../support/uploads/artifact-server.ts";
import { refusal } from "../api/forge-under-test.ts";

/** A preview says what the maintenance then does: both are held against each other, and against what the simulated devices log. */
const VERSION = "U46-9.90";
const image = Buffer.concat([Buffer.from(`MILLWRIGHT-FW GB-2U-96C bios ${VERSION}\n`), Buffer.alloc(20_000, 7)]);
const digest = `sha256:${createHash("sha256").update(image).digest("hex")}`;

let files: ArtifactServer;
let bench: RunBench;
let racks: ReturnType<typeof rackBench>;
let one = "";
let other = "";

beforeAll(async () => {
  files = await startArtifactServer();
  files.files.set("/bios.fwpkg", image);
  const artifactSource = {
    find: async () => ({
      name: "bios.fwpkg",
      bytes: image.length,
      async *chunks() {
        yield image;
      },
    }),
    uriFor: async () => `${files.url}/bios.fwpkg`,
  };
  bench = await startRunBench({ tools: { artifactSource } });
  racks = rackBench(bench);
  [one = "", other = ""] = bench.simulated.map(({ machine_id }) => machine_id);
  await bench.db.execute(
    `insert into rack_profiles (name, hardware_type, class, created_by, compute, switches, power_shelves) values ('r-see', 'gb200', 'prod', 'test', '{"count":2}', '{"count":0}', '{"count":0}')`,
  );
  const component = {
    ...{ device: "compute", component: "bios", class: "prod", version: VERSION, digest, targets: [] },
    ...{ activation: "host_reset", order: 0 },
    file: { name: "bios.fwpkg", url: "http://x/bios.fwpkg", bytes: null, sign: "bearer" },
  };
  await bench.db.execute(
    `insert into rack_firmware (id, config, components, hardware_type, is_default, state, facts) values ('fw-9', '{}', $1, 'gb200', false, 'available', $2)`,
    [JSON.stringify([component]), JSON.stringify({ sizes: { [digest]: image.length } })],
  );
  await bench.db.execute(
    "update machines set rack = 'r-see', conditions = $2::jsonb, basis = basis + 1 where id = any($1)",
    [[one, other], JSON.stringify(CHECKED)],
  );
  await racks.putOnRecord("r-see");
  await racks.until("r-see", "ready");
});
afterAll(async () => {
  await bench.close();
  await files.close();
});

const WHOLE = { machine_ids: [], switch_ids: [], power_shelf_ids: [] };
const input = (change: Partial<StartRackMaintenance> = {}): StartRackMaintenance => ({
  rackId: "r-see",
  scope: WHOLE,
  activities: [{ kind: "firmware_upgrade", firmware_version: "fw-9" }],
  ...change,
});
const preview = (change: Partial<StartRackMaintenance> = {}) =>
  previewRackMaintenance(bench.runDeps, tester, input(change));

async function carryOut(change: Partial<StartRackMaintenance> = {}) {
  const { requestId } = await startRackMaintenance(bench.deps, tester, input(change));
  await eventually(
    async () => {
      const { lastMaintenanceRequest, state } = await racks.rack("r-see");
      return lastMaintenanceRequest?.id === requestId && ["ready", "error"].includes(state.name);
    },
    { what: "the maintenance has ended", seen: async () => JSON.stringify(await racks.rack("r-see"), null, 1) },
  );
  expect(await racks.rack("r-see")).toMatchObject({ state: { name: "ready" } });
  const runs = await listRuns(bench.db, { target: { kind: "rack", id: "r-see" } });
  const [newest] = runs
    .filter(({ plan }) => plan.workflow === "rack_maintenance")
    .sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  if (!newest) throw new Error("there is no run");
  return newest;
}

interface Truth {
  readonly flashes: readonly { readonly component: string; readonly from: string; readonly to: string }[];
  readonly effects: { readonly resets: number };
}
const truth = (id: string) => bench.truth(id) as unknown as Promise<Truth>;
const flashesOf = async (id: string) =>
  (await truth(id)).flashes.map(({ component, from, to }) => ({ component, from, to }));

/** Everything that a preview could have written. */
const written = () =>
  bench.db.query(
    `select (select max(seq) from journal) as journal, (select count(*) from runs) as runs, (select count(*) from claims) as claims,
            (select json_agg(r order by id) from racks r) as racks`,
  );

describe("a preview", () => {
  test("says what the maintenance then does to each device: versions, reboots, stages, and how long such a one took", async () => {
    const first = await preview({ scope: { ...WHOLE, machine_ids: [other] } });
    expect(first.devices.map(({ id }) => id)).toEqual([other]);
    expect(first).toMatchObject({ expectedDuration: null });
    expect(first.durationBasis).toBe("no maintenance of this kind has succeeded yet");
    await carryOut({ scope: { ...WHOLE, machine_ids: [other] } });

    const before = await written();
    const seen = await preview();
    expect(await written(), "nothing was written").toEqual(before);
    const shown = new Map(seen.devices.map((device) => [device.id, device]));
    expect(shown.get(other)).toMatchObject({ components: [{ component: "bios", change: "stays" }], disturbances: [] });
    expect(shown.get(one)).toMatchObject({
      components: [{ component: "bios", to: VERSION, change: "flashed" }],
      disturbances: ["reboots"],
    });
    expect(seen.durationBasis).toMatch(/^median of one maintenance /);
    expect(seen.expectedDuration).toBeGreaterThan(0);

    const resets = (await truth(other)).effects.resets;
    const flashedBefore = await flashesOf(other);
    const run = await carryOut();
    expect(await flashesOf(one)).toEqual(
      shown.get(one)?.components.map(({ component, from, to }) => ({ component, from, to })),
    );
    expect(await flashesOf(other), "what is at its version stays").toEqual(flashedBefore);
    expect((await truth(other)).effects.resets).toBe(resets);
    expect((await truth(one)).effects.resets).toBe(1);
    expect(run.steps.map(({ name, state, message }) => [name, state === "SKIPPED" ? message : ""])).toEqual(
      seen.stages.map(({ name, skipped }) => [name, skipped ?? ""]),
    );
    const { workSet } = (await racks.rack("r-see")).facts;
    expect(workSet?.machines.toSorted()).toEqual([...shown.keys()].toSorted());
  });

  test("names who holds which devices, and what each does; the maintenance would wait for them", async () => {
    await bench.db.execute(
      `insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, granted_at, set_size) values ('machine', $1, 'run', 'run-of-pat', 'RUNNING', now(), 1)`,
      [one],
    );
    try {
      const { holders } = await preview();
      expect(holders).toMatchObject([
        { holder: { kind: "run", id: "run-of-pat" }, devices: [{ kind: "machine", id: one }] },
      ]);
      expect(holders[0]?.does).toContain("RUNNING");
    } finally {
      await bench.db.execute("delete from claims where holder_id = 'run-of-pat'");
    }
  });

  test("of a device whose BMC does not answer says so, and goes on with the others", async () => {
    await bench.fault({ device: one, fault: { type: "drop" } });
    const { devices } = await preview();
    await bench.control("DELETE", "/faults");
    const [component] = devices.find(({ id }) => id === one)?.components ?? [];
    expect(component).toMatchObject({ change: "unknown", from: null, to: VERSION });
    expect(component?.message).not.toBe("");
    expect(devices.find(({ id }) => id === other)?.components).toMatchObject([{ change: "stays" }]);
  });

  test("of firmware that there is not shows the stage that would fail, with the words of the run", async () => {
    const { stages } = await preview({ activities: [{ kind: "firmware_upgrade", firmware_version: "fw-none" }] });
    expect(stages[0]).toMatchObject({
      name: "firmware_upgrade",
      fails: "there is no firmware fw-none; millwright rack-firmware list shows what there is",
    });
  });

  test("says what becomes of trays in use", async () => {
    await racks.setConditions(other, IN_USE);
    try {
      const { assignedTrays } = await preview({ scope: { ...WHOLE, machine_ids: [one] } });
      expect(assignedTrays).toMatchObject([{ id: other, assigned: "yes" }]);
      expect(assignedTrays[0]?.message).toContain("is not in scope");
      const cycled = await preview({
        activities: [{ kind: "power_sequence", operation: "cycle" }],
        includeAssigned: { reason: "the owner agreed" },
      });
      expect(cycled.assignedTrays[0]?.message).toBe(
        "loses power and is switched on again, although it is in use: the owner agreed",
      );
    } finally {
      await racks.setConditions(other, CHECKED);
    }
  });
});

describe("previews leave room for the runs", () => {
  test("callers who look at a device at the same time ask its BMC once", async () => {
    const read = () => bench.runDeps.readFirmware?.({ kind: "machine", id: one }, AbortSignal.timeout(10_000));
    const [first, second] = await Promise.all([read(), read()]);
    expect(first?.length).toBeGreaterThan(0);
    expect(second, "the very same answer").toBe(first);
  });

  test("the durations of the past are read where lists are", async () => {
    const asked: string[] = [];
    const query: typeof bench.db.query = (statement, values) => {
      asked.push(JSON.stringify(statement));
      return bench.db.query(statement, values);
    };
    const lists = { query, execute: bench.db.execute };
    const { durationBasis } = await previewRackMaintenance({ ...bench.runDeps, lists }, tester, input());
    expect(durationBasis).toMatch(/^median of |^no maintenance /);
    expect(asked.filter((text) => text.includes("percentile_cont"))).toHaveLength(1);
  });

  test("the fifth of five at a time is refused, and the four are answered", async () => {
    const client = bench.client(RackService);
    const calls = await bench.db.transaction(async (tx) => {
      await tx.query("lock table racks in access exclusive mode");
      const asked = Array.from({ length: 5 }, () =>
        refusal(client.previewRackMaintenance({ rackId: "r-see", activities: [{ kind: "power_sequence" }] })),
      );
      expect(await Promise.race(asked)).toMatchObject({ code: Code.ResourceExhausted });
      return asked;
    });
    const ends = await Promise.allSettled(calls);
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
});

describe("a preview is refused as its request is, in the same words", () => {
  const both = async (change: Partial<StartRackMaintenance>) => {
    const of = async (call: Promise<unknown>) =>
      call.then(
        () => "accepted",
        (error: Error) => error.message,
      );
    return [await of(preview(change)), await of(startRackMaintenance(bench.deps, tester, input(change)))];
  };
  test.each<[string, Partial<StartRackMaintenance>, string]>([
    ["of no rack", { rackId: "r-none" }, "does not exist"],
    ["with a foreign device", { scope: { ...WHOLE, machine_ids: ["m-else"] } }, "no devices of rack"],
    ["with a malformed id", { scope: { ...WHOLE, switch_ids: ["no switch"] } }, "scope.switch_ids"],
    ["with an activity twice", { activities: [{ kind: "power_sequence" }, { kind: "power_sequence" }] }, "twice"],
    ["with an override without a reason", { includeAssigned: { reason: " " } }, "reason"],
  ])("%s", async (_, change, words) => {
    const [previewed, asked] = await both(change);
    expect(previewed).toBe(asked);
    expect(previewed).toContain(words);
  });

  test("over a tray in use", async () => {
    await racks.setConditions(other, IN_USE);
    try {
      const [previewed, asked] = await both({});
      expect(previewed).toBe(asked);
      expect(previewed).toContain(`assigned trays: ${other}`);
    } finally {
      await racks.setConditions(other, CHECKED);
    }
  });

  test("over gRPC", async () => {
    const client = bench.client(RackService);
    const answer = await client.previewRackMaintenance({ rackId: "r-see", activities: [{ kind: "power_sequence" }] });
    expect(answer.devices.map(({ disturbances }) => disturbances)).toEqual([
      ["is switched on if it is off"],
      ["is switched on if it is off"],
    ]);
    const odd = client.previewRackMaintenance({ rackId: "r-see", activities: [{ kind: "sing" }] });
    expect(await refusal(odd)).toMatchObject({ code: Code.InvalidArgument });
  });
});
