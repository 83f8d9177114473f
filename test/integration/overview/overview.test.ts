import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineService, Run_Phase, RunService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { AttentionReason, OverviewService } from "../../../contract/millwright/v1/overview_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { SavedViewService } from "../../../contract/millwright/v1/saved_view_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { recordConditions } from "../../../src/store/machine/conditions.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

/** A server on which two machines fail to reboot, one does not answer, and one is well. */
let surface: RunSurface;
const failed: string[] = [];
beforeAll(async () => {
  failed.length = 0;
  surface = await startRunSurface({ controller: true, fake: { speed: "instant", failures: ["reboot"] } });
  for (const id of ["m-bad-1", "m-bad-2", "m-silent", "m-good"]) await surface.addMachine(id, "fake");
  for (const machineId of ["m-bad-1", "m-bad-2"]) {
    const { runId } = await surface.runs.startRun({ requestId: "r", machineId, type: "REBOOT" });
    expect((await surface.ended(runId)).phase).toBe(Run_Phase.FAILED);
    failed.push(runId);
  }
  await surface.changeSpec("m-silent", { rack: "rack-7" });
  await surface.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "machine", id: "m-silent" }]);
    const [machine] = await listMachines(tx, { ids: ["m-silent"] });
    if (machine === undefined) throw new Error("there is no m-silent");
    const silent = {
      type: "BMCReachable",
      status: false,
      reason: "NoAnswer",
      message: "nobody answers",
      cause: { code: "unreachable" },
    } as const;
    await recordConditions(tx, machine, { observed: [silent], actor: "reconciler", now: new Date() });
  });
});
afterAll(() => surface.close());

const overview = () => surface.client(OverviewService);
async function cli(...args: string[]) {
  const terminal = createFakeTerminal({ now: new Date() });
  const code = await runCli(args, { version: "1", terminal, transport: surface.transport });
  return { code, out: terminal.out(), err: terminal.err() };
}

test("what needs somebody is grouped by cause, the longest waiting first, and each trouble is told once", async () => {
  const { attention, kinds, cut } = await overview().getOverview({});
  expect(cut).toBe(false);
  expect(
    attention.map(({ kind, reason, state, things, ids, rackId }) => ({
      kind,
      reason,
      state,
      things,
      ids: ids.toSorted(),
      rackId,
    })),
  ).toEqual([
    {
      kind: "run",
      reason: AttentionReason.NEEDS_PERSON,
      state: "FAILED",
      things: 2,
      ids: failed.toSorted(),
      rackId: "",
    },
    {
      kind: "machine",
      reason: AttentionReason.NEEDS_PERSON,
      state: "FACTORY_READY",
      things: 1,
      ids: ["m-silent"],
      rackId: "rack-7",
    },
  ]);
  expect(attention[1]).toMatchObject({ cause: "unreachable", message: "nobody answers" });
  const machines = kinds.find(({ kind }) => kind === "machine");
  expect(machines).toMatchObject({ things: 4n, attention: 1n, working: 0n });
  expect(machines?.states.reduce((sum, { things }) => sum + things, 0n)).toBe(4n);
});

test("the filter of a group finds its things", async () => {
  const { attention } = await overview().getOverview({ kinds: ["run", "machine"] });
  const [runs, machines] = attention;
  const found = await surface.client(RunService).listRuns({ filter: runs?.filter ?? "" });
  expect(found.runs.map(({ runId }) => runId).toSorted()).toEqual(failed.toSorted());
  const silent = await surface.client(MachineService).listMachines({ filter: machines?.filter ?? "" });
  expect(silent.machines.map(({ machineId }) => machineId)).toEqual(["m-silent"]);
});

test("a failed run whose machine somebody has seen to needs nobody any more", async () => {
  const runId = failed[0] ?? "";
  await surface.client(RunActionsService).markRunManual({ runId, comment: "on it" });
  const still = await overview().getOverview({ kinds: ["run"] });
  expect(still.attention.flatMap(({ ids }) => ids)).toContain(runId);
  await surface.lifecycle.exitMaintenance({ machineId: "m-bad-1", acknowledge: true, comment: "fixed" });
  const { attention } = await overview().getOverview({ kinds: ["run", "machine"] });
  expect(attention.flatMap(({ ids }) => ids)).not.toContain(runId);
});

test("things are counted by the fields of their list, with how long those in trouble have been so", async () => {
  const { groups, total } = await overview().countThings({ kind: "machine", groupBy: ["failing", "rack"] });
  expect(total).toBe(4n);
  expect(groups.map(({ values, things, inTrouble }) => [...values, things, inTrouble])).toEqual(
    expect.arrayContaining([["true", "rack-7", 1n, 1n]]),
  );
  const { groups: one } = await overview().countThings({ kind: "machine", filter: "rack=rack-7" });
  expect(one).toMatchObject([{ values: [], things: 1n, inTrouble: 1n, oldestSince: expect.anything() }]);
  expect((await overview().countThings({ kind: "machine", filter: "rack=nowhere" })).total).toBe(0n);
});

test.each([
  [{ kind: "toaster" }, "kind"],
  [{ kind: "batch" }, "kind"],
  [{ kind: "machine", filter: "colour=red" }, "filter"],
  [{ kind: "machine", groupBy: ["colour"] }, "group_by"],
  [{ kind: "machine", groupBy: ["rack extra"] }, "group_by"],
  [{ kind: "machine", groupBy: ["created_at"] }, "group_by"],
  [{ kind: "machine", groupBy: ["rack", "rack"] }, "group_by"],
  [{ kind: "machine", groupBy: ["rack", "slot", "serial", "phase"] }, "group_by"],
  [{ kind: "machine", maxGroups: 1001 }, "max_groups"],
  [{ kind: "machine", maxGroups: -1 }, "max_groups"],
])("a count %j is refused, naming %s", async (request, field) => {
  expect(await refusal(overview().countThings(request))).toMatchObject({ code: Code.InvalidArgument, field });
});

test("an overview of an unknown kind is refused", async () => {
  expect(await refusal(overview().getOverview({ kinds: ["toaster"] }))).toMatchObject({
    code: Code.InvalidArgument,
    field: "kinds",
  });
});

test("the command line shows both", async () => {
  const top = await cli("top");
  expect(top.code).toBe(0);
  expect(top.out).toMatch(/machine m-silent +FACTORY_READY +needs a person .*rack-7 +nobody answers/);
  expect(top.out).toMatch(/KIND +THINGS +NEED SOMEBODY/);
  const counted = await cli("count", "machine", "--by", "rack", "--filter", "failing=true");
  expect(counted.out).toMatch(/RACK +THINGS +TROUBLE/);
  expect(counted.out).toMatch(/rack-7 +1 +1/);
  expect(JSON.parse((await cli("top", "machine", "-o", "json")).out)).toMatchObject({
    kinds: [{ kind: "machine", things: "4" }],
  });
});

test("a list says what it can be filtered, sorted and grouped by", async () => {
  const { fields } = await overview().describeList({ kind: "machine" });
  expect(fields.find(({ name }) => name === "phase")).toMatchObject({
    ...{ type: "words", operators: ["=", "!=", "IN"], sorts: true, groups: true },
    values: expect.arrayContaining(["READY"]),
  });
  expect(fields.find(({ name }) => name === "labels")).toMatchObject({ type: "labels", groups: true });
  expect(fields.find(({ name }) => name === "phase_since")).toMatchObject({ type: "time", groups: false });
  expect(await refusal(overview().describeList({ kind: "toaster" }))).toMatchObject({ field: "kind" });
  for (const { name, groups } of fields)
    if (groups && name !== "labels") await overview().countThings({ kind: "machine", groupBy: [name], maxGroups: 1 });
});

describe("saved views", () => {
  const views = () => surface.client(SavedViewService);
  const mine = { kind: "machine", name: "My racks", filter: "rack^=rack-7", orderBy: "rack desc", groupBy: ["rack"] };

  test("are kept, replaced by name, listed by kind and deleted; the journal tells their names alone", async () => {
    const { view } = await views().saveView({ view: mine });
    expect(view).toMatchObject({ ...mine, savedAt: expect.anything() });
    await views().saveView({ view: { ...mine, filter: "phase=READY" } });
    await views().saveView({ view: { ...mine, kind: "run", orderBy: "", filter: "", groupBy: [] } });
    const kept = (await views().listSavedViews({ kind: "machine" })).views;
    expect(kept.map(({ name, filter }) => ({ name, filter }))).toEqual([{ name: "My racks", filter: "phase=READY" }]);
    expect((await views().listSavedViews({})).views).toHaveLength(2);
    for (const kind of ["machine", "run", "run"]) await views().deleteSavedView({ kind, name: "My racks" });
    expect((await views().listSavedViews({})).views).toEqual([]);
    const told = await surface.db.query("select type, data from journal where kind = 'saved_view' order by seq");
    expect(told.map(({ type, data }) => `${type} ${JSON.stringify(data)}`)).toEqual([
      'created {"of":"machine","name":"My racks"}',
      'replaced {"of":"machine","name":"My racks"}',
      'created {"of":"run","name":"My racks"}',
      'deleted {"of":"machine","name":"My racks"}',
      'deleted {"of":"run","name":"My racks"}',
    ]);
  });

  test.each([
    [{ ...mine, kind: "toaster" }, "kind"],
    [{ ...mine, name: " " }, "view.name"],
    [{ ...mine, name: "n".repeat(81) }, "view.name"],
    [{ ...mine, name: "a\u202eb" }, "view.name"],
    [{ ...mine, filter: "phase=NONSENSE" }, "filter"],
    [{ ...mine, orderBy: "colour" }, "order_by"],
    [{ ...mine, groupBy: ["phase_since"] }, "group_by"],
  ])("%j is refused by its field, and nothing is kept", async (view, field) => {
    expect(await refusal(views().saveView({ view }))).toMatchObject({ code: Code.InvalidArgument, field });
    expect((await views().listSavedViews({})).views).toEqual([]);
  });

  test("are a hundred of a caller at most", async () => {
    for (let n = 0; n < 100; n += 1) await views().saveView({ view: { ...mine, name: `view ${n}` } });
    expect(await refusal(views().saveView({ view: mine }))).toMatchObject({ code: Code.ResourceExhausted });
    await views().saveView({ view: { ...mine, name: "view 7", filter: "" } });
  });
});
