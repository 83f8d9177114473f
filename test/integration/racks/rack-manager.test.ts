import { describe, expect, test } from "vitest";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { explainRack } from "../../../src/services/explain/rack/rack.ts";
import { viewRackDevices } from "../../../src/services/rack/devices.ts";
import { findRack } from "../../../src/services/rack/find-rack.ts";
import { terminateRackMaintenance } from "../../../src/services/rack/maintenance.ts";
import { eventually } from "../../support/eventually.ts";
import { carryOut } from "../../support/explain-bench.ts";
import { type ManagedBench, startManagedBench } from "../../support/racks/managed-bench.ts";
import { CONFIGURE, UPGRADE, WANTED } from "../../support/racks/managed-racks.ts";
import type { Api } from "../../support/racks/stand-in-rack-manager.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** The maintenance of racks through a rack manager that was written from the specification, and knows nothing of ours. */
describe.each(["d", "h"] satisfies Api[])("a rack manager that speaks %s", (api) => {
  let bench: ManagedBench;
  beforeAll(async () => {
    bench = await startManagedBench(api);
  });
  afterAll(() => bench.close());

  const batched = (rack: string) =>
    eventually(async () => bench.standIn.batchesOf(rack).length > 0, { what: `a batch for ${rack}` });
  const types = { d: { compute: 1, power_shelf: 2, switch: 3 }, h: { compute: 2, power_shelf: 3, switch: 4 } }[api];

  test("is sent one batch a kind of device, and children only follow their jobs", async () => {
    await bench.addRack("r-kinds", { compute: 2, switch: 1, power_shelf: 1 });
    await bench.request("r-kinds");
    await eventually(async () => bench.standIn.batchesOf("r-kinds").length === 3, { what: "three batches" });
    const [trays] = bench.standIn.batchesOf("r-kinds", "compute");
    const { target } = bench.front("r-kinds-m1");
    expect(trays).toMatchObject({
      activate: true,
      files: [{ type: types.compute, target: "bmc", filename: "tray-2.0.fwpkg" }],
      nodes: [
        {
          ...{ id: "r-kinds-m1", rack: "r-kinds", type: types.compute, address: "127.0.0.1", port: target.port },
          ...{ username: target.username, password: target.password },
        },
        { id: "r-kinds-m2" },
      ],
    });
    expect(bench.standIn.batchesOf("r-kinds", "switch")).toMatchObject([
      { nodes: [{ id: "r-kinds-s1", mac: expect.stringMatching(/^02:/) }], files: [{ filename: "switch-2.0.fwpkg" }] },
    ]);
    expect(bench.standIn.batchesOf("r-kinds", "power_shelf")).toMatchObject([{ nodes: [{ id: "r-kinds-p1" }] }]);
    bench.standIn.jobOf("r-kinds-m1").description = "written to 42 %";
    await eventually(
      async () => {
        const rows = await bench.db.query<{ steps: { message: string }[] }>(
          "select facts -> 'steps' as steps from runs where target_id = 'r-kinds-m1' and parent_run_id is not null",
        );
        return rows.some(({ steps }) => steps.some(({ message }) => /42 %/.test(message)));
      },
      { what: "the run tells of 42 %" },
    );
    for (const device of ["r-kinds-m1", "r-kinds-m2", "r-kinds-s1", "r-kinds-p1"]) bench.finish(device);
    await bench.racks.until("r-kinds", "ready");
    const followers = (await bench.children("r-kinds")).filter(({ kinds }) => kinds.includes("follow_firmware_job"));
    expect(followers.map(({ target: device, state }) => `${device} ${state}`).toSorted()).toEqual(
      ["m1", "m2", "p1", "s1"].map((device) => `r-kinds-${device} SUCCEEDED`),
    );
    expect(bench.standIn.batchesOf("r-kinds")).toHaveLength(3);
    // What the runs have proven counts, although nobody has inspected the trays since.
    const devices = await viewRackDevices(bench.deps, await findRack(bench.db, "r-kinds"));
    expect(devices.filter(({ kind }) => kind === "machine").map(({ firmware }) => firmware)).toEqual(
      Array(2).fill([{ component: "bmc", installed: WANTED, wanted: WANTED }]),
    );
    // No BMC was told anything by us.
    for (const device of ["r-kinds-m1", "r-kinds-s1", "r-kinds-p1"])
      expect(bench.front(device).requests.filter((each) => !each.startsWith("GET"))).toEqual([]);
  });

  test("configures the fabric once, on the primary switch, and is asked until every switch is a part of it", async () => {
    await bench.addRack("r-fabric", { switch: 2 }, "gb200_nvl72r1_c2g4");
    bench.standIn.isConfigured = () => false;
    await bench.request("r-fabric", [...UPGRADE, ...CONFIGURE]);
    await batched("r-fabric");
    bench.finish("r-fabric-s1");
    bench.finish("r-fabric-s2");
    await eventually(async () => bench.standIn.configured.length > 0, { what: "the fabric is configured" });
    bench.standIn.isConfigured = () => true;
    await bench.racks.until("r-fabric", "ready");
    expect(bench.standIn.configured).toEqual([{ node: "r-fabric-s1", topology: "gb200_nvl72r1_c2g4" }]);
    expect(bench.standIn.batchesOf("r-fabric")).toHaveLength(1);
  });
});

/** What holds for both, seen once. */
describe("a rack manager", () => {
  let bench: ManagedBench;
  beforeAll(async () => {
    bench = await startManagedBench("d");
  });
  afterAll(() => bench.close());

  const batched = (rack: string) =>
    eventually(async () => bench.standIn.batchesOf(rack).length > 0, { what: `a batch for ${rack}` });
  const causeOf = async (rack: string) => (await bench.racks.until(rack, "error")).state.cause ?? "";
  const followers = async (rack: string) =>
    (await bench.children(rack)).filter(({ kinds }) => kinds.includes("follow_firmware_job"));
  const messageOf = async (device: string) => {
    const [row] = await bench.db.query<{ message: string }>(
      "select facts -> 'steps' -> 0 ->> 'message' as message from runs where target_id = $1 and parent_run_id is not null and plan @> '{\"steps\": [{\"kind\": \"follow_firmware_job\"}]}'",
      [device],
    );
    return row?.message ?? "";
  };
  const field = (no: number, value: string) =>
    Buffer.concat([Buffer.from([no * 8 + 2, value.length]), Buffer.from(value)]);

  test("a device that fails is named with why, and what is done is not done again on the next request", async () => {
    await bench.addRack("r-part", { compute: 3 });
    bench.standIn.refuses.set("r-part-m3", "the node is under repair");
    await bench.request("r-part");
    await batched("r-part");
    bench.finish("r-part-m1");
    Object.assign(bench.standIn.jobOf("r-part-m2"), { state: "failed", error: "the image is not for this board" });
    const cause = await causeOf("r-part");
    expect(cause).toContain("r-part-m2: ");
    expect(cause).toContain("the image is not for this board");
    expect(cause).toContain("r-part-m3: the node is under repair");
    expect(cause).not.toContain("r-part-m1");
    bench.standIn.refuses.clear();
    await bench.request("r-part");
    await eventually(async () => bench.standIn.batchesOf("r-part").length === 2, { what: "a second batch" });
    expect(bench.standIn.batchesOf("r-part")[1]?.nodes.map(({ id }) => id)).toEqual(["r-part-m2", "r-part-m3"]);
    bench.finish("r-part-m2");
    bench.finish("r-part-m3");
    await bench.racks.until("r-part", "ready");
  });

  test("a job that is complete while the version stays is a failure", async () => {
    await bench.addRack("r-lies", { compute: 1 });
    bench.limits.flashDeadline = seconds(36); // a twelfth of it is what a device gets to show the version
    await bench.request("r-lies");
    await batched("r-lies");
    bench.limits.flashDeadline = seconds(600);
    bench.standIn.jobOf("r-lies-m1").state = "completed";
    expect(await causeOf("r-lies")).toMatch(/r-lies-m1: .*complete.*bmc 1\.0, wanted 2\.0/);
    expect(bench.shows("r-lies-m1")).toBe("1.0");
  });

  test("whose answer to the batch is lost is sent nothing again: the devices themselves tell", async () => {
    await bench.addRack("r-lost", { compute: 2 });
    bench.standIn.ends = (call) => (call === "update" ? "cut" : "answer");
    await bench.request("r-lost");
    await eventually(async () => (await followers("r-lost")).length === 2, { what: "both are followed" });
    bench.standIn.ends = () => "answer";
    bench.finish("r-lost-m1");
    bench.finish("r-lost-m2");
    await bench.racks.until("r-lost", "ready");
    expect(bench.standIn.batchesOf("r-lost")).toHaveLength(1);
    expect(bench.shows("r-lost-m2")).toBe(WANTED);
  });

  test.each(["never", "cut"] as const)(
    "that does not answer (%s) ends in error by the deadline, and nothing was sent",
    async (end) => {
      const rack = `r-silent-${end}`;
      await bench.addRack(rack, { compute: 2 });
      bench.standIn.ends = () => end;
      bench.limits.flashDeadline = seconds(2);
      await bench.request(rack);
      const cause = await causeOf(rack);
      bench.standIn.ends = () => "answer";
      bench.limits.flashDeadline = seconds(600);
      expect(cause).toMatch(
        /no answer for .*the rack manager: .*nothing was written to r-silent-\w+-m1, r-silent-\w+-m2/,
      );
      expect(bench.standIn.batchesOf(rack)).toEqual([]);
      // The first command is what helps, once it answers again.
      const { headline, nextCommands } = await explainRack(bench.deps, rack);
      expect(headline).toContain("the rack manager");
      const first = nextCommands[0]?.command ?? "";
      expect(first).toMatch(/^millwright rack maintenance start /);
      await carryOut(bench, first);
      await batched(rack);
      bench.finish(`${rack}-m1`);
      bench.finish(`${rack}-m2`);
      await bench.racks.until(rack, "ready");
    },
  );

  test.each([
    ["falls silent after the batch", "cut", /the rack manager/],
    ["never ends a job", "answer", /job rms-\d+: 10 %/],
  ] as const)("that %s leaves each device unproven by the deadline, and it keeps its claim", async (_, end, says) => {
    const rack = `r-${end}`;
    await bench.addRack(rack, { compute: 1 });
    bench.limits.flashDeadline = seconds(3);
    bench.standIn.ends = (call) => (call === "job" ? end : "answer");
    await bench.request(rack);
    const cause = await causeOf(rack);
    expect(cause).toMatch(new RegExp(`${rack}-m1: unproven, run run-\\S+ goes on: `));
    expect(cause).toMatch(says);
    bench.standIn.ends = () => "answer";
    bench.limits.flashDeadline = seconds(600);
    const [run] = await followers(rack);
    expect(run).toMatchObject({ state: "RUNNING", unproven: true });
    const { failure } = (await bench.racks.rack(rack)).state;
    expect(failure).toMatchObject({ code: "firmware_unproven", facts: { at: "rack_manager" } });
    // Whoever asks again leaves the device alone.
    await bench.request(rack);
    await eventually(async () => /may still write to it/.test(await causeOf(rack)), { what: "the device is left out" });
    expect(bench.standIn.batchesOf(rack)).toHaveLength(1);
  });

  test("what it says of another device, or of no job that it knows, is not believed", async () => {
    await bench.addRack("r-odd", { compute: 1 });
    await bench.request("r-odd");
    await batched("r-odd");
    let asked = 0;
    bench.standIn.answersJob = (job) => {
      asked += 1;
      // In d: SUCCESS, this job, FAILED, of another device.
      return asked % 2 === 0
        ? undefined
        : Buffer.concat([field(3, job), Buffer.from([0x20, 3]), field(7, "r-other-m1")]);
    };
    const saysSo = async () => /told of job \S+ of r-other-m1/.test(await messageOf("r-odd-m1"));
    await eventually(saysSo, { what: "the answer makes no sense" });
    bench.standIn.answersJob = () => Buffer.concat([Buffer.from([0x10, 1]), field(9, "no such job")]);
    await eventually(async () => /cannot tell of job/.test(await messageOf("r-odd-m1")), {
      what: "the job is not known",
    });
    bench.standIn.answersJob = undefined;
    bench.finish("r-odd-m1");
    await bench.racks.until("r-odd", "ready");
  });

  test("terminate follows a flash that has begun to its end, and begins no other", async () => {
    await bench.addRack("r-term", { compute: 1 });
    await bench.request("r-term", [...UPGRADE, ...CONFIGURE]);
    await batched("r-term");
    await terminateRackMaintenance(bench.deps, tester, "r-term");
    await eventually(async () => /canceled when this has ended/.test(await messageOf("r-term-m1")), {
      what: "it is followed",
    });
    expect((await bench.racks.rack("r-term")).state.name).toBe("maintenance");
    bench.finish("r-term-m1");
    expect(await causeOf("r-term")).toMatch(/terminated; r-term-m1: firmware_upgrade/);
    expect(bench.standIn.batchesOf("r-term")).toHaveLength(1);
    expect(bench.shows("r-term-m1")).toBe(WANTED);
  });

  test("terminate before the answer to the batch is on record: the devices are followed all the same", async () => {
    await bench.addRack("r-early", { compute: 1 });
    bench.standIn.holds = (call, rack) => (call === "update" && rack === "r-early" ? new Promise(() => {}) : undefined);
    await bench.request("r-early");
    await batched("r-early");
    await terminateRackMaintenance(bench.deps, tester, "r-early");
    await eventually(async () => /canceled when this has ended/.test(await messageOf("r-early-m1")), {
      what: "it is followed",
    });
    expect((await bench.racks.rack("r-early")).state.name).toBe("maintenance");
    bench.standIn.holds = () => undefined;
    bench.finish("r-early-m1");
    expect(await causeOf("r-early")).toMatch(/terminated; r-early-m1: firmware_upgrade/);
    expect(bench.standIn.batchesOf("r-early")).toHaveLength(1);
  });

  test("of the other numbering is found out before anything is sent", async () => {
    const other = await startManagedBench("h");
    try {
      other.standIn.api = "d";
      await other.addRack("r-other", { compute: 1 });
      await other.request("r-other");
      const { cause, failure } = (await other.racks.until("r-other", "error")).state;
      expect(cause).toMatch(/BatchGetNodeDeviceInfo.*gRPC status 12/);
      expect(failure).toMatchObject({ code: "unsupported", facts: { at: "rack_manager" } });
      expect(other.standIn.batches).toEqual([]);
    } finally {
      await other.close();
    }
  });
});
