import { createHash } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { milliseconds, seconds } from "../../../src/kernel/time/duration.ts";
import type { HostReprovision } from "../../../src/lifecycles/host-reprovision/host-reprovision.ts";
import { deviceFirmwareSteps } from "../../../src/runs/steps/rack/device-steps.ts";
import { startsRun } from "../../../src/runs/targets/new-run.ts";
import { explainMachine } from "../../../src/services/explain/machine.ts";
import { explainHostReprovision } from "../../../src/services/explain/rack/host-reprovision.ts";
import { hostReprovisionStore } from "../../../src/store/host-reprovision/host-reprovisions.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { listRackFirmware } from "../../../src/store/rack-firmware/rack-firmware.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ArtifactServer, startArtifactServer } from "../../support/uploads/artifact-server.ts";
import { refusal } from "../api/forge-under-test.ts";

const VERSION = "9.9.9";
const image = Buffer.concat([Buffer.from(`MILLWRIGHT-FW GB-2U-96C bmc ${VERSION}\n`), Buffer.alloc(20_000, 7)]);
const digest = `sha256:${createHash("sha256").update(image).digest("hex")}`;
const RETRY_INTERVAL = milliseconds(500);

let files: ArtifactServer;
let bench: RunBench;
let at = -1;
let id = "";

beforeAll(async () => {
  files = await startArtifactServer();
  files.files.set("/bmc.fwpkg", image);
  const artifactSource = {
    find: async () => ({
      name: "bmc.fwpkg",
      bytes: image.length,
      async *chunks() {
        yield image;
      },
    }),
    uriFor: async () => `${files.url}/bmc.fwpkg`,
  };
  const hostFirmware = { retryInterval: RETRY_INTERVAL, maxRetries: 1, flashDeadline: seconds(36) };
  bench = await startRunBench({ tools: { artifactSource, hostFirmware } });
  await bench.db.execute(
    `insert into rack_profiles (name, hardware_type, class, created_by, compute, switches, power_shelves) values ('p', 'gb200', 'prod', 'test', '{"count":1}', '{"count":0}', '{"count":0}')`,
  );
  await bench.db.execute(
    "insert into racks (id, name, rack_profile_id, state) values ('rack-1', 'rack-1', 'p', 'ready') on conflict (id) do update set rack_profile_id = 'p'",
  );
  const component = {
    device: "compute",
    component: "bmc",
    class: "prod",
    version: VERSION,
    digest,
    targets: [],
    activation: "none",
    order: 0,
  };
  await bench.db.execute(
    `insert into rack_firmware (id, config, components, hardware_type, is_default, state, facts) values ('fw-9', '{}', $1, 'gb200', true, 'available', $2)`,
    [
      JSON.stringify([
        { ...component, file: { name: "bmc.fwpkg", url: "http://x/bmc.fwpkg", bytes: null, sign: "bearer" } },
      ]),
      JSON.stringify({ sizes: { [digest]: image.length } }),
    ],
  );
});
afterAll(async () => {
  await bench.close();
  await files.close();
});
/** A tray of its own for each test: in a rack, and used by nobody. */
beforeEach(async () => {
  at += 1;
  id = bench.simulated[at]?.machine_id ?? "";
  await bench.db.execute(
    "update machines set rack = 'rack-1', state = 'MAINTENANCE', basis = basis + 1 where id = $1",
    [id],
  );
});
afterEach(() => bench.control("DELETE", "/faults"));

const load = async (): Promise<HostReprovision> => {
  const [host] = (await hostReprovisionStore.load(bench.db, [id])).things;
  if (!host) throw new Error(`${id} has no host reprovision`);
  return host;
};
const untilState = (name: string) =>
  eventually(async () => (await load()).state.name === name, {
    what: `${id} is ${name}`,
    seen: async () => {
      const { state, outcome, facts } = await load();
      const runs = await bench.db.query("select id, state, outcome, facts from runs where target_id = $1", [id]);
      return JSON.stringify({ state, outcome, facts, runs }, null, 1);
    },
  });
/** As a firmware upgrade that failed too often leaves it. */
const stick = () =>
  bench.db.execute(
    `update host_reprovisions set state = 'failed_firmware_upgrade', state_data = '{"cause": "bmc shows 1.0"}', basis = basis + 1,
       facts = '{"retryCount": 2, "exhausted": true, "reportedAt": "2026-01-01T00:00:00Z"}' where id = $1`,
    [id],
  );
const states = async () =>
  (
    await bench.db.query<{ to: string }>(
      `select to_state as to from journal where kind = 'host_reprovision' and id = $1 and type = 'transition' and to_state <> coalesce(from_state, '') order by epoch, xid, seq`,
      [id],
    )
  ).map(({ to }) => to);
const bmcVersion = async () => {
  const truth = await bench.truth(id);
  return JSON.stringify(truth).includes(`"${VERSION}"`);
};
const lastRequest = async () =>
  (
    await bench.db.query<{ last: { outcome?: string; message?: string } | null }>(
      "select last_reprovision_request as last from host_reprovisions where id = $1",
      [id],
    )
  )[0]?.last;
const alerts = async () =>
  (
    await bench.db.query<{ source: string }>("select source from health_reports where kind = 'machine' and id = $1", [
      id,
    ])
  ).map(({ source }) => source);

describe("a stuck compute converges", () => {
  test("by itself: a request leads to checking_firmware_v2 at once, with the retries counted again", async () => {
    await stick();
    await bench.lifecycle.reprovisionMachine({ machineId: id, reference: "FW-12" });
    await untilState("checking_firmware_v2");
    expect((await load()).facts).toMatchObject({ retryCount: 0, exhausted: false });
    expect(await alerts()).toContain("host-fw-update");
    const [machine] = await bench.db.query<{ degraded: boolean | null }>(
      `select (select (c ->> 'status')::boolean from jsonb_array_elements(conditions) c where c ->> 'type' = 'Degraded') as degraded from machines where id = $1`,
      [id],
    );
    expect(machine?.degraded ?? false).toBe(false);
    await untilState("ready");
    expect(await bmcVersion()).toBe(true);
    expect(await alerts()).not.toContain("host-fw-update");
    expect(await lastRequest()).toMatchObject({ outcome: "completed" });
    expect(await states()).toEqual(["checking_firmware_v2", "ready"]);
  });

  test("by its rack: the rack's run leads to waiting_for_rack_firmware_upgrade, and its proof to ready", async () => {
    await stick();
    const [firmware] = await listRackFirmware(bench.db, { ids: ["fw-9"] });
    const run = startsRun(
      {
        target: { kind: "machine", id },
        holder: { kind: "rack", id: "rack-1" },
        plan: { planId: "x", displayName: "x", steps: deviceFirmwareSteps("fw-9", firmware?.components ?? []) },
        initiator: "rack-rack-1",
      },
      ["test", id],
    );
    await bench.db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "run", id: run.id }]);
      await create(tx, storeOf(bench.deps.stores, "run"), { id: run.id, row: run.row, actor: "test" });
    });
    await untilState("ready");
    expect(await states()).toEqual(["waiting_for_rack_firmware_upgrade", "ready"]);
    expect(await bmcVersion()).toBe(true);
    expect((await bench.machines.getMachine({ machineId: id })).status?.phase).toBeDefined();
    const [machine] = await bench.db.query<{ state: string }>("select state from machines where id = $1", [id]);
    expect(machine?.state).toBe("MAINTENANCE");
  });
});

test("an upgrade whose task lies fails with its cause, is tried again a few times, and then rests until somebody asks", async () => {
  await bench.fault({ device: id, fault: { type: "flash_lies" } });
  await bench.lifecycle.reprovisionMachine({ machineId: id });
  await eventually(async () => (await load()).facts.exhausted, { what: "the retries are exhausted", within: 60_000 });
  const { state, facts } = await load();
  expect(state).toMatchObject({ name: "failed_firmware_upgrade", failure: { code: "firmware_not_applied" } });
  expect(facts.retryCount).toBe(1);
  expect(await lastRequest()).toMatchObject({ outcome: "failed" });
  const { headline, nextCommands } = await explainHostReprovision(bench.deps, id);
  expect(headline).toContain("it failed");
  expect(nextCommands[0]?.command).toBe(`millwright machine reprovision ${id}`);
  const machine = await explainMachine(bench.deps, id);
  expect(machine.headline).toContain("its firmware upgrade failed");
  expect(machine.nextCommands.map(({ command }) => command)).toContain(`millwright explain host_reprovision ${id}`);
  await bench.control("DELETE", "/faults");
  await bench.lifecycle.reprovisionMachine({ machineId: id });
  await untilState("ready");
  expect(await bmcVersion()).toBe(true);
});

test("a tray in use is left alone until nobody uses it", async () => {
  await bench.db.execute("update machines set state = 'READY', customer_id = 'acme', basis = basis + 1 where id = $1", [
    id,
  ]);
  await bench.lifecycle.reprovisionMachine({ machineId: id });
  await eventually(async () => (await load()).outcome?.reason.includes("is in use"), { what: "it says so" });
  const { nextCommands } = await explainHostReprovision(bench.deps, id);
  expect(nextCommands[0]?.command).toBe(`millwright machine enter-maintenance ${id}`);
  expect((await bench.db.query("select 1 from runs where target_id = $1", [id])).length).toBe(0);
  await bench.db.execute(
    "update machines set state = 'MAINTENANCE', customer_id = null, basis = basis + 1 where id = $1",
    [id],
  );
  await bench.db.execute("update work set wake_at = now() where kind = 'host_reprovision' and id = $1", [id]);
  await bench.db.execute("notify millwright");
  await untilState("ready");
  await eventually(async () => (await lastRequest())?.outcome === "completed", { what: "it was upgraded" });
  expect(await bmcVersion()).toBe(true);
});

test("a tray whose firmware is being renewed does not come into use meanwhile", async () => {
  await bench.lifecycle.reprovisionMachine({ machineId: id });
  await untilState("checking_firmware_v2");
  const { spec } = await bench.machines.getMachine({ machineId: id });
  if (!spec) throw new Error(`${id} has no spec`);
  const machine = { machineId: id, spec: { ...spec, customerId: "acme" } };
  expect(await refusal(bench.machines.updateMachine({ machine }))).toMatchObject({
    code: Code.FailedPrecondition,
    field: "machine.spec.customer_id",
    message: expect.stringContaining(`cannot be assigned: host_reprovision ${id}`),
  });
  expect(await refusal(bench.lifecycle.exitMaintenance({ machineId: id }))).toMatchObject({
    code: Code.FailedPrecondition,
    message: expect.stringContaining(`cannot be taken out of maintenance: host_reprovision ${id}`),
  });
  await untilState("ready");
});

test("without a record to compare with, the request ends and says so", async () => {
  await bench.db.execute("update machines set rack = null, basis = basis + 1 where id = $1", [id]);
  await bench.lifecycle.reprovisionMachine({ machineId: id });
  await eventually(async () => (await lastRequest())?.message, { what: "it ended" });
  expect(await lastRequest()).toMatchObject({
    outcome: "completed",
    message: expect.stringContaining("skipped: it is in no rack"),
  });
});

describe("a request", () => {
  test("with reset is refused while the rack works on the tray", async () => {
    await bench.db.execute(
      "insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, granted_at) values ('machine', $1, 'rack', 'rack-1', 'maintains it', now())",
      [id],
    );
    const answer = await refusal(bench.lifecycle.reprovisionMachine({ machineId: id, reset: true }));
    expect(answer).toMatchObject({ code: Code.FailedPrecondition, field: "reset" });
    expect(answer.message).toContain("rack rack-1 works on it");
    // Without it, the request waits for the rack.
    await bench.lifecycle.reprovisionMachine({ machineId: id });
    await eventually(async () => (await load()).outcome?.reason.includes("rack"), { what: "it waits for the rack" });
    await bench.db.execute("delete from claims where thing_id = $1 and holder_kind = 'rack'", [id]);
  });

  test("for an unknown, malformed or retired machine is refused", async () => {
    expect(await refusal(bench.lifecycle.reprovisionMachine({ machineId: "nope" }))).toMatchObject({
      code: Code.NotFound,
    });
    expect(await refusal(bench.lifecycle.reprovisionMachine({ machineId: "No!" }))).toMatchObject({
      code: Code.InvalidArgument,
    });
    await bench.db.execute("update machines set state = 'RETIRED', basis = basis + 1 where id = $1", [id]);
    expect(await refusal(bench.lifecycle.reprovisionMachine({ machineId: id }))).toMatchObject({
      code: Code.FailedPrecondition,
    });
  });
});
