import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineStatus_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { type BootRequest, bootNode } from "../../../src/services/install/boot/boot.ts";
import { readBootSteps } from "../../../src/services/install/boot/boot-steps.ts";
import { applyReports } from "../../../src/services/install/reports.ts";
import { changeInstallState } from "../../../src/services/install/state/state-changes.ts";
import { createWorkflow } from "../../../src/services/install/workflows.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { loadInstalls } from "../../../src/store/install/installs.ts";
import { whyRefused } from "../../../src/store/install/orders.ts";
import { type ConditionBench, openConditionBench } from "../../support/condition-bench.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";

/** Machines whose owners give a BMC and no MAC address: what tells them apart is what their BMCs report. */
let bench: RunBench;
let checks: ConditionBench;
let unused: { readonly id: string; readonly mac: string }[];
beforeAll(async () => {
  bench = await startRunBench({ speed: 100, site: "racks=1" });
  for (const { machine_id: machineId } of bench.simulated) {
    const machine = await bench.machines.getMachine({ machineId });
    Object.assign(machine.spec ?? {}, { macAddresses: [] });
    await bench.machines.updateMachine({ machine });
  }
  checks = openConditionBench(bench);
  unused = bench.simulated.map(({ machine_id, mac_addresses }) => ({ id: machine_id, mac: mac_addresses[0] ?? "" }));
});
afterAll(async () => {
  await checks.close();
  await bench.close();
});

const take = () => {
  const one = unused.shift();
  if (!one) throw new Error("no machine is left");
  return one;
};
const twinOf = (mac: string) => `m-${mac.replaceAll(":", "")}`;
const boot = (mac: string, hardware: BootRequest["hardware"] = {}) =>
  bootNode(
    bench.deps,
    { autoRegister: true, defaultGroupId: null, eraser: null },
    { mac, hardware: { vendor: "Acme", ...hardware }, server: "http://192.0.2.1", address: "192.0.2.9" },
  );
const phaseOf = async (machineId: string) =>
  MachineStatus_Phase[(await bench.machines.getMachine({ machineId })).status?.phase ?? 0];
const installOf = async (id: string) => (await loadInstalls(bench.db, [id])).things[0];
const eventsOf = async (id: string) =>
  (await bench.client(HistoryService).listHistory({ kind: "machine", id, pageSize: 1_000 })).events;
const inspected = (id: string) =>
  eventually(
    async () => (await bench.db.query("select 1 from machine_seen_macs where machine_id = $1", [id])).length > 0,
    {
      what: `the BMC of ${id} was asked for its addresses`,
    },
  );

describe("a machine that booted before anybody knew its BMC", () => {
  test("becomes one with the machine whose BMC reports the address, and its install goes along", async () => {
    const { id, mac } = take();
    await boot(mac);
    expect(await installOf(twinOf(mac))).toMatchObject({ state: { name: "discovered" } });
    const reconciling = checks.start({ interval: seconds(1) });
    await inspected(id);
    await eventually(async () => (await installOf(id)) !== undefined, { what: "the install is the machine's own" });
    await reconciling.stop();
    expect(await installOf(id)).toMatchObject({ mac, state: { name: "discovered" }, facts: { vendor: "Acme" } });
    expect(await installOf(twinOf(mac))).toMatchObject({ state: { name: "retired" } });
    expect(await phaseOf(twinOf(mac))).toBe("RETIRED");
    const told = (await eventsOf(id)).find(({ type }) => type === "twin_absorbed");
    expect(told?.data).toMatchObject({ machine: twinOf(mac), mac });
    expect((await eventsOf(twinOf(mac))).at(-1)).toMatchObject({
      toState: "RETIRED",
      reason: expect.stringContaining(id),
    });
    // The next boot is the machine's own.
    await boot(mac);
    expect((await bench.db.query("select 1 from machines where $1 = any(macs)", [mac])).length).toBe(1); // the retired one
  });

  test("becomes one with a machine that is registered with the address, also when two callers do so at once", async () => {
    const mac = "02:1d:00:00:00:01";
    await boot(mac);
    const register = (serial: string) =>
      bench.machines.registerMachine({
        machine: { machineId: "registered", spec: { macAddresses: [mac], serial, bmcEndpoint: "192.0.2.77" } },
      });
    await Promise.all([register("S-77"), register("S-77")]);
    expect(await phaseOf(twinOf(mac))).toBe("RETIRED");
    expect(await installOf("registered")).toMatchObject({ mac, state: { name: "discovered" } });
    expect((await eventsOf("registered")).filter(({ type }) => type === "twin_absorbed")).toHaveLength(1);
  });

  test("stays a machine of its own once it is approved: nobody's installation is lost", async () => {
    const mac = "02:1d:00:00:00:02";
    await boot(mac);
    await changeInstallState(bench.deps, tester, twinOf(mac), { state: "pending", comment: "", force: false });
    const machine = { machineId: "late", spec: { macAddresses: [mac] } };
    const refused = await bench.machines.registerMachine({ machine }).catch((error) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.AlreadyExists });
    expect(await installOf(twinOf(mac))).toMatchObject({ state: { name: "pending" } });
    expect(await bench.db.query("select 1 from machines where id = 'late'")).toEqual([]);
  });

  test("is not taken for a machine that an operator put on record", async () => {
    const mac = "02:1d:00:00:00:03";
    await bench.machines.registerMachine({ machine: { spec: { macAddresses: [mac] } } });
    await boot(mac);
    const refused = await bench.machines
      .registerMachine({ machine: { machineId: "slip", spec: { macAddresses: [mac] } } })
      .catch((error) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.AlreadyExists });
    expect(await phaseOf(twinOf(mac))).toBe("FACTORY_READY");
  });
});

test("a boot and an order are matched by the address that the BMC reports", async () => {
  const { id, mac } = take();
  const reconciling = checks.start({ interval: seconds(1) });
  await inspected(id);
  await reconciling.stop();
  const workflow = await createWorkflow(bench.deps, tester, {
    id: "one",
    name: "One",
    description: "",
    osFamily: "linux",
    architecture: "x86_64",
    bootMode: "any",
    boot: { method: "chain", chain_url: "/files/a" },
    steps: [],
    nextState: "installed",
  });
  expect(workflow).toBeDefined();
  const order = { machineId: id, runId: "r", orderId: "1", stamp: "", workflowId: "one", digest: "", mac };
  expect(await whyRefused(bench.db, order)).toBeNull();
  expect(await whyRefused(bench.db, { ...order, mac: "02:1d:00:00:00:99" })).toContain("is no address of machine");
  await boot(mac);
  expect(await installOf(id)).toMatchObject({ mac, state: { name: "discovered" } });
  expect(await bench.db.query("select 1 from machines where id = $1", [twinOf(mac)])).toEqual([]);
});

test("an address that two BMCs report is an alert on both, makes no third machine, and ends with one of them", async () => {
  const { id, mac } = take();
  const { spec } = await bench.machines.getMachine({ machineId: id });
  const simulated = bench.simulated.find(({ machine_id }) => machine_id === id);
  // The same BMC under another name, as a second record of one machine has it.
  const bmcEndpoint = (spec?.bmcEndpoint ?? "").replace(/^(127\.\d+\.\d+\.\d+):/, "[::ffff:$1]:");
  expect(bmcEndpoint).toMatch(/^\[/);
  await bench.machines.registerMachine({ machine: { machineId: "double", spec: { bmcEndpoint } } });
  await setMachineCredentials(bench.deps, tester, {
    machineId: "double",
    bmcUsername: simulated?.bmc_username ?? "",
    bmcPassword: simulated?.bmc_password ?? "",
    sshUsername: "",
    sshPrivateKey: "",
  });
  const reconciling = checks.start({ interval: seconds(1) });
  for (const [one, other] of [
    [id, "double"],
    ["double", id],
  ] as const) {
    const { message } = await checks.becomes(one, "Degraded", true, "OpenAlert");
    expect(message).toContain(`MAC ${mac} is also reported by the BMC of machine ${other}`);
  }
  expect(await boot(mac)).toContain("is reported by the BMCs of several machines: double");
  expect(await bench.db.query("select 1 from machines where id = $1", [twinOf(mac)])).toEqual([]);
  await bench.lifecycle.retireMachine({ machineId: "double" });
  await checks.becomes(id, "Degraded", false);
  await reconciling.stop();
});

test("a BMC that claims the address of a machine that is being installed keeps it from nothing", async () => {
  const { id, mac } = take();
  const reconciling = checks.start({ interval: seconds(1) });
  await inspected(id);
  await reconciling.stop();
  await createWorkflow(bench.deps, tester, {
    id: "claimed",
    name: "Claimed",
    description: "",
    osFamily: "linux",
    architecture: "x86_64",
    bootMode: "any",
    boot: { method: "kernel", kernel_url: "/files/a", environment: true, cmdline: "" },
    steps: [],
    nextState: "installed",
  });
  await boot(mac);
  const approved = { state: "pending", comment: "", force: false, workflowId: "claimed" } as const;
  await changeInstallState(bench.deps, tester, id, approved);
  const tokenOf = (script: string) => /millwright\.token=(\S+)/.exec(script)?.[1] ?? script;
  const token = tokenOf(await boot(mac));
  const report = async (status: "started" | "progress", reported = mac) => {
    const told = { mac: reported, status };
    const [answer] = await applyReports(bench.deps, { requireTokens: true }, [
      { report: told, token, address: "192.0.2.9" },
    ]);
    return answer;
  };
  expect(await report("started")).toMatchObject({ install: { id, state: { name: "installing" } } });

  const other = "02:1d:00:00:00:44";
  const seenBy = (machineId: string, ...macs: string[]) =>
    bench.db.query("update machines set facts = facts || jsonb_build_object('macs', $2::jsonb) where id = $1", [
      machineId,
      JSON.stringify(macs),
    ]);
  await seenBy(id, mac, other);
  // Before and behind it in the alphabet.
  for (const rival of ["a-rival", "z-rival"]) {
    await bench.machines.registerMachine({ machine: { machineId: rival, spec: { serial: rival } } });
    await seenBy(rival, mac, other);
  }
  expect(await report("progress")).toMatchObject({ install: { id } });
  // Through another of its ports: nothing but the token tells whose it is.
  expect(await report("progress", other)).toMatchObject({ install: { id } });
  expect(
    await readBootSteps(bench.deps, { mac: other, token, server: "http://192.0.2.1", address: "192.0.2.9" }),
  ).toContain("state installing");
  await expect(readBootSteps(bench.deps, { mac: other, token: "wrong", server: "", address: null })).rejects.toThrow(
    "report_token",
  );
  expect(await boot(mac)).toContain("the installation is under way");
  for (const rival of ["a-rival", "z-rival"]) expect(await installOf(rival)).toBeUndefined();
});

describe("a boot with the address of a machine and the hardware of another", () => {
  const OTHER = { serialNumber: "S-other", systemUuid: "11111111-2222-4333-8444-555555555555" };
  const tokenOf = (script: string) => /millwright\.token=(\S+)/.exec(script)?.[1];

  test("gets nothing of the machine's install, changes nothing of it, and is told once by an event and an alert", async () => {
    const { id, mac } = take();
    const reconciling = checks.start({ interval: seconds(1) });
    await inspected(id);
    await createWorkflow(bench.deps, tester, {
      id: "own",
      name: "Own",
      description: "",
      osFamily: "linux",
      architecture: "x86_64",
      bootMode: "any",
      boot: { method: "kernel", kernel_url: "/files/a", environment: true, cmdline: "" },
      steps: [],
      nextState: "installed",
    });
    await boot(mac);
    await changeInstallState(bench.deps, tester, id, {
      state: "pending",
      comment: "",
      force: false,
      workflowId: "own",
    });
    const { serial, system_uuid: uuid } = bench.simulated.find(({ machine_id }) => machine_id === id) ?? {};
    const own = { serialNumber: serial ?? "", systemUuid: (uuid ?? "").toUpperCase() };
    const token = tokenOf(await boot(mac, own)) ?? "";
    expect(token).not.toBe("");
    const before = await installOf(id);
    for (const _ of [1, 2]) {
      const script = await boot(mac, OTHER);
      expect(tokenOf(script)).toBeUndefined();
      expect(script).toMatch(/its hardware is not that of the machine on record, booting from disk\nexit\n$/);
      for (const known of [id, serial ?? "", uuid ?? ""]) expect(script).not.toContain(known);
    }
    expect(await installOf(id)).toEqual(before);
    const told = (await eventsOf(id)).filter(({ type }) => type === "boot_contradicted");
    expect(told).toHaveLength(1);
    expect(told[0]?.data).toEqual({
      mac,
      told: `serial ${OTHER.serialNumber}, UUID ${OTHER.systemUuid}`,
      known: `serial ${serial}, UUID ${uuid}`,
    });
    const { message } = await checks.becomes(id, "Degraded", true, "OpenAlert");
    expect(message).toContain(`a boot from MAC ${mac} says serial S-other, UUID ${OTHER.systemUuid}`);
    expect(message).toContain(`the machine has serial ${serial}, UUID ${uuid}`);
    // The token of the machine's own boot is still good.
    const report = { report: { mac, status: "started" as const }, token, address: "192.0.2.9" };
    const [answer] = await applyReports(bench.deps, { requireTokens: true }, [report]);
    expect(answer).toMatchObject({ install: { id, state: { name: "installing" } } });
    // Nobody has booted so for a day.
    await bench.db.execute("update strange_boots set last_at = last_at - interval '25 hours' where machine_id = $1", [
      id,
    ]);
    await checks.becomes(id, "Degraded", false);
    await reconciling.stop();
  });

  test("makes nothing of a machine that never booted, and ends no other claim to the address", async () => {
    const { id, mac } = take();
    const reconciling = checks.start({ interval: seconds(1) });
    await inspected(id);
    await reconciling.stop();
    await boot(mac, OTHER);
    expect(await installOf(id)).toBeUndefined();
    expect(await bench.db.query("select 1 from machines where id = $1", [twinOf(mac)])).toEqual([]);
    expect(
      await bench.db.query("select 1 from machine_seen_macs where machine_id = $1 and mac = $2", [id, mac]),
    ).toHaveLength(1);
    // What a boot said first is not held against the machine itself.
    await boot(mac, { vendor: "Acme" });
    expect(await installOf(id)).toMatchObject({ state: { name: "discovered" } });
  });
});

describe("the addresses of a BMC", () => {
  const learn = (id: string, macs: readonly string[], readAgo: string) =>
    bench.db.transaction(async (tx) => {
      const known =
        "update machines set facts = facts || jsonb_build_object('macs', $2::jsonb), basis = basis + 1 where id = $1";
      await tx.execute(known, [id, JSON.stringify(macs)]);
      await tx.execute("update condition_looks set macs_read_at = now() - $2::interval where machine_id = $1", [
        id,
        readAgo,
      ]);
    });
  const seenOf = async (id: string) =>
    (
      await bench.db.query<{ mac: string }>("select mac from machine_seen_macs where machine_id = $1 order by mac", [
        id,
      ])
    ).map(({ mac }) => mac);

  test("are read again now and then, and sooner where it named none; the address of an install is not dropped", async () => {
    const { id, mac } = take();
    const [installed, gone] = ["02:1d:00:00:00:61", "02:1d:00:00:00:62"];
    const reconciling = checks.start({ interval: seconds(1) });
    await inspected(id);
    await learn(id, [], "2 hours");
    await eventually(async () => (await seenOf(id)).includes(mac), { what: "an empty list is read again" });
    await reconciling.stop();
    await learn(id, [installed, gone], "1 minute");
    await boot(installed);
    expect(await installOf(id)).toMatchObject({ mac: installed });
    const again = checks.start({ interval: seconds(1) });
    await checks.looked(id, 1);
    expect(await seenOf(id)).toEqual([installed, gone]);
    await learn(id, [installed, gone], "13 hours");
    const real = (bench.simulated.find(({ machine_id }) => machine_id === id)?.mac_addresses ?? []).toSorted();
    await eventually(async () => !(await seenOf(id)).includes(gone), { what: "the list is read again" });
    expect(await seenOf(id)).toEqual([...real, installed].sort());
    await again.stop();
  });

  test("may be forgotten, as with another BMC endpoint: an install under way is still known by its own", async () => {
    const { id, mac } = take();
    const reconciling = checks.start({ interval: seconds(1) });
    await inspected(id);
    await reconciling.stop();
    await boot(mac);
    await bench.db.execute("update machines set facts = facts || '{\"macs\": null}' where id = $1", [id]);
    expect(await seenOf(id)).toEqual([]);
    await boot(mac);
    expect(await bench.db.query("select 1 from machines where id = $1", [twinOf(mac)])).toEqual([]);
    expect(await installOf(id)).toMatchObject({ mac, state: { name: "discovered" } });
  });
});

test("a server is not taken in as a power shelf, and says what it is", async () => {
  const { id } = take();
  const { spec } = await bench.machines.getMachine({ machineId: id });
  const simulated = bench.simulated.find(({ machine_id }) => machine_id === id);
  const shelves = bench.client(PowerShelfService);
  await shelves.createPowerShelf({
    id: "no-shelf",
    bmcMac: "02:1d:00:00:00:05",
    bmcEndpoint: spec?.bmcEndpoint ?? "",
    bmcUsername: simulated?.bmc_username ?? "",
    bmcPassword: simulated?.bmc_password ?? "",
  });
  const shelf = await eventually(
    async () => {
      const { powerShelf } = await shelves.getPowerShelf({ id: "no-shelf" });
      return powerShelf?.stateReason !== "" && powerShelf;
    },
    { what: "its controller says why it does not go on" },
  );
  expect(shelf).toMatchObject({ state: "fetching_data" });
  expect(JSON.stringify(shelf, (_, value) => (typeof value === "bigint" ? Number(value) : value))).toContain(
    "this is the BMC of a machine and not of a power shelf",
  );
});
