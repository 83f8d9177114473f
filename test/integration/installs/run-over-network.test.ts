import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { createImage } from "../../../src/services/catalog/images.ts";
import { explain } from "../../../src/services/explain/explain.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { imageTable } from "../../../src/store/catalog/images.ts";
import { loadInstalls } from "../../../src/store/install/installs.ts";
import { allThings, explainersOf } from "../../../src/wiring/things/all-things.ts";
import { eventually } from "../../support/eventually.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  IMAGE,
  type InstallRunBench,
  OTHER_WORKFLOW,
  PLAN,
  startInstallRuns,
  WAITING_PLAN,
  WORKFLOW,
} from "./install-runs.ts";

let bench: InstallRunBench;
let unused: string[];
beforeAll(async () => {
  bench = await startInstallRuns();
  unused = bench.simulated.map(({ machine_id }) => machine_id);
});
afterAll(() => bench.close());

/** One of its own for each test, taken over. */
async function takeMachine(): Promise<string> {
  const machineId = unused.shift();
  if (machineId === undefined) throw new Error("the rack has no machine left");
  await bench.lifecycle.acceptMachine({ machineId });
  return machineId;
}

/** As by a run that has begun to install the machine, up to the report that it is under way. */
async function beginInstall(machineId: string, planId = PLAN) {
  const runId = await bench.start(machineId, planId);
  await bench.ordered(runId, machineId);
  const firmware = bench.firmwareOf(machineId);
  expect(await firmware.boot()).toMatchObject({ type: "kernel" });
  await firmware.report({ installation_status: "started" });
  return { runId, firmware };
}

describe("one inventory", () => {
  test("a machine that a run installs over the network shows both stories, and they agree after every step", async () => {
    const machineId = await takeMachine();
    const resets = (await bench.truth(machineId)).effects;
    const runId = await bench.start(machineId);
    await bench.ordered(runId, machineId);
    const under = { machine: "PROVISIONING", run: "RUNNING", step: "install RUNNING" };
    expect(await bench.pairs(machineId, runId)).toEqual({ ...under, install: "pending" });
    expect(await bench.installOf(machineId)).toMatchObject({ state: "pending", workflow_id: WORKFLOW });

    const firmware = bench.firmwareOf(machineId);
    const booted = await firmware.boot();
    expect(booted).toMatchObject({ type: "kernel", words: { node: machineId, token: expect.any(String) } });
    expect(await bench.pairs(machineId, runId)).toEqual({ ...under, install: "pending" });

    await firmware.report({ installation_status: "started" });
    expect(await bench.pairs(machineId, runId)).toEqual({ ...under, install: "installing" });
    await firmware.report({ installation_status: "progress", installation_progress: 40 });
    await eventually(async () => (await bench.messageOf(runId)).includes("40 % of attempt 1 of 3"), {
      what: "the run tells of the progress",
      seen: () => bench.messageOf(runId),
    });
    expect(await bench.pairs(machineId, runId)).toEqual({ ...under, install: "installing" });
    const explained = (kind: string, id: string) =>
      explain({ ...bench.deps, explainers: explainersOf(allThings) }, { kind, id });
    for (const [kind, id] of [
      ["run", runId],
      ["machine", machineId],
    ] as const)
      expect((await explained(kind, id)).waitingFor[0], kind).toBe(`install ${machineId}, which is installing`);
    expect(await explained("install", machineId)).toMatchObject({
      headline: expect.stringContaining(`run ${runId} installs it`),
      nextCommands: expect.arrayContaining([expect.objectContaining({ command: `millwright explain run ${runId}` })]),
    });

    const { body } = await firmware.report({ installation_status: "complete" });
    expect(body.data.state).toBe("installed");
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    const done = { machine: "READY", run: "SUCCEEDED", step: "install SUCCEEDED", install: "active" };
    expect(await bench.pairs(machineId, runId)).toEqual(done);

    expect((await bench.history(machineId)).map(tell)).toEqual([
      ["installed → active", "system", { caused_by: `run ${runId}` }],
      ["installing → installed", "node_report", null],
      ["pending → installing", "node_report", null],
      ["discovered → pending", "system", { caused_by: `run ${runId}` }],
    ]);
    const truth = await bench.truth(machineId);
    expect(truth.boot_override.enabled).toBe("Disabled");
    expect(truth.effects.installs_started, "it booted from the network once").toBe((resets.installs_started ?? 0) + 1);
    expect((await bench.logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("")).toMatch(
      /\[repave\] workflow ubuntu-2404 is to be installed at the next boot from the network/,
    );
  });

  test("what is active is marked to be installed again first, what a person queued is taken over, and what a run holds is left to it", async () => {
    const machineId = await takeMachine();
    const firmware = bench.firmwareOf(machineId);
    await firmware.boot();
    for (const state of ["pending", "installing", "installed", "active"]) await moveTo(machineId, state);
    const first = await beginInstall(machineId);
    await first.firmware.report({ installation_status: "complete" });
    expect(await bench.ended(first.runId)).toMatchObject({ phase: Run_Phase.SUCCEEDED });
    const steps = (await bench.history(machineId)).map((one) => tell(one)[0]);
    expect(steps.slice(0, 5)).toEqual([
      "installed → active",
      "installing → installed",
      "pending → installing",
      "reprovision → pending",
      "active → reprovision",
    ]);

    await moveTo(machineId, "reprovision");
    await moveTo(machineId, "pending");
    const second = await beginInstall(machineId);
    await second.firmware.report({ installation_status: "complete" });
    expect(await bench.ended(second.runId)).toMatchObject({ phase: Run_Phase.SUCCEEDED });

    const waiting = await bench.start(machineId, WAITING_PLAN);
    await eventually(async () => (await bench.pairs(machineId, waiting)).run === "RUNNING", { what: "it runs" });
    for (const state of ["deprovisioning", "migrating"]) {
      const { status, text } = await bench.call("PATCH", `/api/v1/nodes/${machineId}/state`, { state });
      expect([status, text]).toEqual([400, expect.stringContaining(`run ${waiting} works on machine`)]);
    }
    await bench.runs.cancelRun({ runId: waiting });
    await bench.ended(waiting);
  });

  test("while a run of another kind holds the machine, what a person queued waits: its boot goes to the disk, its reports are recorded", async () => {
    const machineId = await takeMachine();
    const firmware = bench.firmwareOf(machineId);
    await firmware.boot();
    await patch(machineId, { workflow_id: WORKFLOW });
    await moveTo(machineId, "pending");
    const runId = await bench.start(machineId, WAITING_PLAN);
    await eventually(async () => (await bench.runs.getRun({ runId })).phase === Run_Phase.RUNNING, { what: "it runs" });
    expect(await firmware.boot()).toMatchObject({
      type: "disk",
      screen: expect.stringContaining(`run ${runId} works`),
    });
    await firmware.report({ installation_status: "started" });
    expect(await bench.installOf(machineId)).toMatchObject({ state: "pending" });
    const events = await bench.call<{ data: { type: string; message: string }[] }>(
      "GET",
      `/api/v1/nodes/${machineId}/events?event_type=report_ignored`,
    );
    expect(events.body.data).toMatchObject([
      { message: `started was reported while run ${runId} works on the machine` },
    ]);
    await bench.runs.cancelRun({ runId });
    await bench.ended(runId);
  });
});

describe("while a run installs a node", () => {
  test("nobody takes it away: another workflow and retiring are refused and name the run", async () => {
    const machineId = await takeMachine();
    const { runId } = await beginInstall(machineId);
    const refused = [
      await patch(machineId, { workflow_id: OTHER_WORKFLOW }),
      await bench.call("DELETE", `/api/v1/nodes/${machineId}`),
    ];
    for (const { status, text } of refused) expect([status, text]).toEqual([400, expect.stringContaining(runId)]);
    await expect(bench.lifecycle.retireMachine({ machineId })).rejects.toThrow(runId);
    expect(await bench.installOf(machineId)).toMatchObject({ state: "installing", workflow_id: WORKFLOW });
    await bench.runs.cancelRun({ runId });
    await bench.ended(runId);
  });

  test.each(["pending", "installing"])(
    "a cancel in %s leaves nothing that would be installed later",
    async (state) => {
      const machineId = await takeMachine();
      const firmware = bench.firmwareOf(machineId);
      const runId = state === "installing" ? (await beginInstall(machineId)).runId : await bench.start(machineId);
      if (state === "pending") await bench.ordered(runId, machineId);
      await bench.runs.cancelRun({ runId });
      await bench.ended(runId);
      expect(await bench.pairs(machineId, runId)).toMatchObject({ run: "CANCELED", install: "install_failed" });
      const record = (await loadInstalls(bench.db, [machineId])).things[0];
      expect(record?.facts).toMatchObject({ orderedBy: null, lastInstallError: `run ${runId} ended CANCELED` });
      expect(await firmware.boot()).toMatchObject({ type: "disk" });
      await eventually(async () => (await bench.truth(machineId)).boot_override.enabled === "Disabled", {
        what: "the boot source is taken back",
      });
      expect(await bench.deps.db.query("select * from claims where thing_id = $1", [machineId])).toEqual([]);
    },
    60_000,
  );

  test("three failures of the node are one failed attempt of the step, which begins again; after the last the run tells why", async () => {
    const machineId = await takeMachine();
    const { runId, firmware } = await beginInstall(machineId);
    const failThrice = async () => {
      for (const attempt of [1, 2, 3]) {
        await firmware.report({ installation_status: "failed", installation_error: "Disk not found" }, `f${attempt}`);
        if (attempt < 3) expect(await firmware.boot()).toMatchObject({ type: "kernel" });
      }
    };
    await failThrice();
    await bench.ordered(runId, machineId);
    expect(await bench.installOf(machineId)).toMatchObject({ install_attempts: 0, last_install_error: null });
    expect(await firmware.boot()).toMatchObject({ type: "kernel" });
    await firmware.report({ installation_status: "started" });
    await failThrice();
    const run = await bench.ended(runId);
    expect(run).toMatchObject({
      phase: Run_Phase.FAILED,
      error: { message: expect.stringContaining("Disk not found") },
    });
    expect(run.steps.at(-1)).toMatchObject({ retryCount: 2 });
    expect(await bench.installOf(machineId)).toMatchObject({ state: "install_failed", install_attempts: 3 });
  }, 90_000);

  test("complete without the token of the boot is no proof", async () => {
    const machineId = await takeMachine();
    const { runId, firmware } = await beginInstall(machineId);
    await firmware.report({ installation_status: "complete", report_token: undefined });
    const run = await bench.ended(runId);
    expect(run).toMatchObject({
      phase: Run_Phase.FAILED,
      error: { message: expect.stringMatching(/did not carry the token of its boot/) },
    });
    expect(await bench.pairs(machineId, runId)).toMatchObject({ install: "installed" });
    expect((await loadInstalls(bench.db, [machineId])).things[0]?.facts.orderedBy).toBeNull();
  });
});

describe("a run over the network is refused", () => {
  test("for a node that is retired", async () => {
    const machineId = await takeMachine();
    await bench.firmwareOf(machineId).boot();
    await moveTo(machineId, "retired");
    const runId = await bench.start(machineId);
    const run = await bench.ended(runId);
    expect(run).toMatchObject({ phase: Run_Phase.FAILED, error: { message: expect.stringContaining("is retired") } });
  });

  test("at its start, where the provider has no such boot path; and so is an image without its workflow", async () => {
    const machineId = await bench.addMachine("m-ironic", "ironic");
    await expect(bench.start(machineId)).rejects.toThrow(
      /step install needs netInstall, which provider ironic cannot do/,
    );
    const image = { name: "i", kind: "netboot", digest: `sha256:${"0".repeat(64)}`, successProof: "token" };
    await expect(createImage(bench.deps, tester, { ...image, location: "none" })).rejects.toThrow(
      /workflow none does not exist/,
    );
    await expect(createImage(bench.deps, tester, { ...image, location: WORKFLOW })).rejects.toThrow(/digest: must be/);
  });
});

test("an image that proves itself over SSH has its stamp in the boot script", async () => {
  const machineId = await takeMachine();
  const [{ digest } = { digest: "" }] = await imageTable.list(bench.db, { names: [IMAGE] });
  await createImage(bench.deps, tester, {
    name: "by-ssh",
    kind: "netboot",
    location: WORKFLOW,
    digest,
    successProof: "ssh",
  });
  await createPlan(bench.deps, tester, {
    planId: "plan-by-ssh",
    displayName: "",
    steps: [{ kind: "repave", name: "install", timeoutSeconds: 120, maxRetries: 0, payload: { image_ref: "by-ssh" } }],
  });
  const runId = await bench.start(machineId, "plan-by-ssh");
  await bench.ordered(runId, machineId);
  const booted = await bench.firmwareOf(machineId).boot();
  const stamp = booted.type === "kernel" ? Buffer.from(booted.words.stamp ?? "", "base64").toString() : "";
  expect(stamp).toMatch(
    new RegExp(`^image=by-ssh\ndigest=${digest}\nmachine=${machineId}\nserial=.+\ntoken=[0-9a-f]{48}\n$`),
  );
  await bench.runs.cancelRun({ runId });
  await bench.ended(runId);
});

const tell = ({
  from_state,
  to_state,
  triggered_by,
  metadata,
}: Awaited<ReturnType<InstallRunBench["history"]>>[number]) =>
  [`${from_state} → ${to_state}`, triggered_by, metadata] as const;
const patch = (id: string, body: object) => bench.call("PATCH", `/api/v1/nodes/${id}`, body);
async function moveTo(id: string, state: string): Promise<void> {
  const { status, text } = await bench.call("PATCH", `/api/v1/nodes/${id}/state`, { state });
  expect([status, text]).toEqual([200, expect.anything()]);
}
