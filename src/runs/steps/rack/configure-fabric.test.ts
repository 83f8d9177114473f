import { expect, test } from "vitest";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { Fabric, FabricStatus } from "../../../capabilities/rack/fabric.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import type { ProbeReport } from "../../model/step.ts";
import { configureFabric, fabricEnded } from "./configure-fabric.ts";

const RUNNING: FabricStatus = {
  state: "ok",
  additionInfo: "CONTROL_PLANE_STATE_CONFIGURED",
  reason: null,
  error: null,
};
const WAITING: FabricStatus = { ...RUNNING, state: "not_ok", additionInfo: null, reason: "GFM: UNINITIALIZED" };

interface World {
  readonly indexes: readonly (number | null)[];
  readonly statuses?: readonly (FabricStatus | "silent")[];
  readonly explicit?: boolean;
  readonly without?: string;
  /** What each call to the primary comes to; true once there are no more. */
  readonly started?: boolean[];
}

/** A rack whose switches are sw-0, sw-1 … with these tray indexes. */
function contextOf({ indexes, statuses = [], explicit = true, without, started = [] }: World, evidence: object = {}) {
  const ids = indexes.map((_index, at) => `sw-${at}`);
  const configured: string[] = [];
  const fabric: Fabric = {
    async configure({ address }) {
      configured.push(address);
      return { job: "changes-1", isStarted: started.shift() ?? true };
    },
    listJobs: async () => {
      if (statuses[0] === "silent") throw new DeviceFailure("unreachable", "switch_os", "no answer");
      return ["older"];
    },
    async readStatus({ address }) {
      const status = statuses[ids.indexOf(address)] ?? RUNNING;
      if (status === "silent") throw new DeviceFailure("unreachable", "switch_os", "no answer");
      return status;
    },
  };
  const context = {
    payload: { topology: "nvl72", switches: ids, explicit },
    target: {
      switches: ids.map((id, at) => ({ id, trayIndex: indexes[at] ?? null, state: at === 1 ? "error" : "ready" })),
    },
    can: { fabric },
    call: {},
    clock: { now: () => new Date(0) },
    log: () => undefined,
    fabricTarget: async (id: string) => {
      if (id === without)
        throw new StepFailure("credentials_missing", `switch ${id} has none`, { facts: { at: "switch_os" } });
      return { address: id };
    },
    evidence,
  } as unknown as Parameters<typeof configureFabric.probe>[0];
  return { context, configured };
}

test("the primary is the switch with the lowest tray index", async () => {
  const { context } = contextOf({ indexes: [4, 1, 3] });
  expect(await configureFabric.before(context)).toEqual({ primary: "sw-1", jobs: ["older"] });
});

test.each([
  [[1, null], "switch sw-1 has no tray index"],
  [[2, 2], "two switches have the tray index 2: sw-0 is one"],
])("of switches with indexes %j none can be chosen", async (indexes, message) => {
  const { context } = contextOf({ indexes });
  const failure = { code: "fabric_index_missing", message };
  await expect(configureFabric.before(context)).rejects.toMatchObject(failure);
  const implied = contextOf({ indexes, explicit: false });
  expect(await configureFabric.before(implied.context)).toEqual({ primary: null, skipped: message });
});

test("where a switch cannot be signed in to, it fails if somebody asked for it, and is skipped otherwise", async () => {
  const world = { indexes: [0, 1], without: "sw-1" };
  await expect(configureFabric.before(contextOf(world).context)).rejects.toMatchObject({ code: "credentials_missing" });
  const { context } = contextOf({ ...world, explicit: false });
  const evidence = await configureFabric.before(context);
  const { context: later, configured } = contextOf({ ...world, explicit: false }, evidence);
  expect(await configureFabric.probe(later)).toMatchObject({ state: "done", verdict: "skipped" });
  expect(configured).toEqual([]);
});

test("it is done once every switch reports the fabric, and each learns whether it is the primary", async () => {
  const evidence = { primary: "sw-1" };
  const waiting = contextOf({ indexes: [1, 0, 2], statuses: [WAITING, RUNNING, "silent"] }, evidence);
  expect(await configureFabric.probe(waiting.context)).toMatchObject({
    state: "not_done",
    message: "not configured: switch sw-0 (not ok, GFM: UNINITIALIZED), switch sw-2 (no answer)",
    cause: { code: "fabric_not_configured", facts: { name: "sw-0" } },
  });
  await configureFabric.act(waiting.context);
  expect(waiting.configured).toEqual(["sw-1"]);
  const done = await configureFabric.probe(contextOf({ indexes: [1, 0] }, evidence).context);
  expect(done).toMatchObject({
    state: "done",
    effects: [
      { kind: "switch", id: "sw-0", facts: { isPrimary: false, fabric: { state: "ok" } } },
      { kind: "switch", id: "sw-0", cause: "fabric_configured", ifPossible: true },
      { kind: "switch", id: "sw-1", facts: { isPrimary: true } },
      { kind: "switch", id: "sw-1", cause: "fabric_configured" },
    ],
  });
});

test("the controller is started once; then the fabric is only awaited, and what is late is named", async () => {
  const starting: FabricStatus = { ...RUNNING, state: "not_ok", additionInfo: "CONTROL_PLANE_STATE_UNCONFIGURED" };
  const world = { indexes: [0, 1], statuses: [starting, starting], started: [false, true] };
  const { context, configured } = contextOf(world, { primary: "sw-0" });
  const begun = { ...context, actingAt: new Date(0) };
  const enabled = (await configureFabric.act(begun))?.receipt ?? null;
  expect(await configureFabric.probe({ ...begun, receipt: enabled })).toMatchObject({ state: "halfway" });
  const receipt = (await configureFabric.carryOn?.({ ...begun, receipt: enabled }))?.receipt ?? null;
  expect(receipt).toEqual({ started: true, job: "changes-1" });
  expect(configured).toEqual(["sw-0", "sw-0"]);
  expect(await configureFabric.probe({ ...begun, receipt })).toMatchObject({
    state: "in_progress",
    message:
      "not configured: switch sw-0 (not ok, CONTROL_PLANE_STATE_UNCONFIGURED), switch sw-1 (not ok, CONTROL_PLANE_STATE_UNCONFIGURED)",
    cause: { code: "fabric_not_configured" },
  });
});

test("a primary whose operating system starts is no reason to fail before anything was begun", async () => {
  const { context } = contextOf({ indexes: [0], statuses: ["silent"] });
  expect(await configureFabric.before(context)).toEqual({ primary: "sw-0", jobs: null });
});

test("a switch in error waits for the fabric from the first call on; switches without it at the end have failed", async () => {
  const evidence = { primary: "sw-0", jobs: [] };
  const { context } = contextOf({ indexes: [0, 1], statuses: [RUNNING, WAITING] }, evidence);
  const begun = { ...context, actingAt: new Date(0), receipt: null };
  const acted = await configureFabric.act(begun);
  expect(acted?.effects).toMatchObject([
    { id: "sw-1", cause: "rack_requested", ifPossible: true, data: { step: "waiting_for_nmxc_configure" } },
  ]);
  const again = await configureFabric.carryOn?.({ ...begun, receipt: acted?.receipt ?? null });
  expect(again?.effects).toEqual([]);
  const { receipt = null } = (await configureFabric.probe({
    ...begun,
    receipt: acted?.receipt ?? null,
  })) as ProbeReport;
  const visit = { kind: "configure_fabric", state: "FAILED", receipt, message: "late" } as const;
  expect(fabricEnded(visit, ["sw-0", "sw-1"])).toMatchObject([
    { id: "sw-0", cause: "fabric_configured", ifPossible: true },
    { id: "sw-1", cause: "fabric_failed", message: "the fabric is not configured: not ok, GFM: UNINITIALIZED" },
  ]);
  expect(fabricEnded({ ...visit, receipt: null }, ["sw-0"])).toMatchObject([
    { id: "sw-0", cause: "fabric_failed", message: "the fabric is not configured: late" },
  ]);
  expect(fabricEnded({ ...visit, state: "SUCCEEDED" }, ["sw-0"])).toEqual([]);
});

test("after a crash before the receipt the primary is asked again, and what was announced here and not begun is begun", async () => {
  const { context } = contextOf({ indexes: [0], statuses: [WAITING] }, { primary: "sw-0" });
  const announced = { ...context, actingAt: new Date(0), receipt: null };
  expect(await configureFabric.probe(announced)).toMatchObject({ state: "halfway" });
  expect(await configureFabric.probe({ ...announced, hasNotBegun: true })).toMatchObject({ state: "not_done" });
});
