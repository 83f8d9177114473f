import { describe, expect, test } from "vitest";
import type { MaasMachine } from "../../capabilities/fleet/maas-machine.ts";
import type { FleetNodeState } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { WatchedNode } from "../../store/fleet/observations.ts";
import { isNewlyAbsent, isTooMuch, judge } from "./judge-nodes.ts";

const DEPLOYED = { systemId: "abc123", status: 6, statusName: "Deployed", power: "on", serial: "S1" } as MaasMachine;
const READY = { ...DEPLOYED, status: 4, statusName: "Ready", power: "off" } as MaasMachine;

const aNode = (more: Partial<WatchedNode> = {}): WatchedNode => ({
  id: "fn-1",
  systemId: "abc123",
  state: "active",
  basis: 1,
  lastRun: "r1",
  hasActiveRun: false,
  serial: "S1",
  known: {
    systemId: "abc123",
    observed: "Deployed",
    statusName: "Deployed",
    power: "on",
    verdict: "fine",
    drift: null,
  },
  ...more,
});

describe("what a listing says of a node", () => {
  test("is nothing new while MAAS shows what it showed", () => {
    expect(judge(aNode(), DEPLOYED, false)).toMatchObject({
      observed: "Deployed",
      drift: { is: "fine" },
      isNew: false,
    });
  });

  test.each<[string, Partial<WatchedNode>, MaasMachine | undefined]>([
    ["it was never recorded", { known: null }, DEPLOYED],
    ["another status", {}, READY],
    ["another power state", {}, { ...DEPLOYED, power: "off" }],
    ["no machine any more", {}, undefined],
    ["the node is bound to another machine now", { systemId: "other1" }, DEPLOYED],
  ])("is new where %s", (_what, more, machine) => {
    expect(judge(aNode(more), machine, false).isNew).toBe(true);
  });

  test("is the job's affair while one runs, and ours as soon as it has ended", () => {
    expect(judge(aNode({ hasActiveRun: true }), READY, false).drift).toEqual({ is: "fine" });
    expect(judge(aNode(), READY, false).drift).toEqual({ is: "quarantine", reason: "released_in_maas" });
  });

  test("is that another server has its name, by the serial number that was known first", () => {
    const other = { ...DEPLOYED, serial: "S2" };
    expect(judge(aNode(), other, false).drift).toEqual({ is: "quarantine", reason: "identity_mismatch" });
    expect(judge(aNode({ serial: null }), other, false).drift).toEqual({ is: "fine" });
  });
});

test("a machine that is not in the listing is asked for once", () => {
  expect(isNewlyAbsent(aNode(), undefined)).toBe(true);
  expect(isNewlyAbsent(aNode(), DEPLOYED)).toBe(false);
  const known = { systemId: "abc123", observed: "absent", statusName: "", power: "unknown", drift: null } as const;
  expect(isNewlyAbsent(aNode({ known: { ...known, verdict: "fine" } }), undefined)).toBe(false);
  expect(isNewlyAbsent(aNode({ systemId: "other1", known: { ...known, verdict: "fine" } }), undefined)).toBe(true);
});

test("a MAAS that shows most nodes of a site as gone at once is doubted; a few, or a part of many, are believed", () => {
  const some = (count: number, machine: MaasMachine, state: FleetNodeState = "active") =>
    Array.from({ length: count }, () => judge(aNode({ state }), machine, false));
  expect(isTooMuch(some(10, READY))).toBe(false);
  expect(isTooMuch(some(11, READY))).toBe(true);
  expect(isTooMuch([...some(11, READY), ...some(11, DEPLOYED)])).toBe(false);
  expect(isTooMuch([...some(12, READY), ...some(11, DEPLOYED)])).toBe(true);
  expect(isTooMuch([...some(12, READY), ...some(50, DEPLOYED, "retired")])).toBe(true);
});
