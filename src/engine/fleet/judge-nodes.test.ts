import { describe, expect, test } from "vitest";
import type { MaasMachine } from "../../capabilities/fleet/maas-machine.ts";
import type { FleetNodeState } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { WatchedNode } from "../../store/fleet/observations.ts";
import { isLedOn, isNewlyAbsent, isTooMuch, judgeNode } from "./judge-nodes.ts";

const DEPLOYED = { systemId: "abc123", status: 6, statusName: "Deployed", power: "on", serial: "S1" } as MaasMachine;
const READY = { ...DEPLOYED, status: 4, statusName: "Ready", power: "off" } as MaasMachine;

const aNode = (more: Partial<WatchedNode> = {}): WatchedNode => ({
  id: "fn-1",
  systemId: "abc123",
  state: "active",
  basis: 1,
  lastRun: "r1",
  hasActiveRun: false,
  failedStage: null,
  serial: "S1",
  known: {
    systemId: "abc123",
    observed: "Deployed",
    statusName: "Deployed",
    power: "on",
    verdict: "fine",
    drift: null,
    idleRun: null,
  },
  ...more,
});

describe("what a listing says of a node", () => {
  test("is nothing new while MAAS shows what it showed", () => {
    expect(judgeNode(aNode(), DEPLOYED, false)).toMatchObject({
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
    expect(judgeNode(aNode(more), machine, false).isNew).toBe(true);
  });

  test("is the job's affair while one runs, and ours as soon as it has ended", () => {
    expect(judgeNode(aNode({ hasActiveRun: true }), READY, false).drift).toEqual({ is: "fine" });
    expect(judgeNode(aNode(), READY, false).drift).toEqual({ is: "quarantine", reason: "released_in_maas" });
  });

  test("is that another server has its name, by the serial number that was known first", () => {
    const other = { ...DEPLOYED, serial: "S2" };
    expect(judgeNode(aNode(), other, false).drift).toEqual({ is: "quarantine", reason: "identity_mismatch" });
    expect(judgeNode(aNode({ serial: null }), other, false).drift).toEqual({ is: "fine" });
  });
});

describe("a job that failed goes on by itself", () => {
  const FAILED = { ...READY, status: 2, statusName: "Failed commissioning" } as MaasMachine;
  const shown = {
    systemId: "abc123",
    statusName: "Failed commissioning",
    power: "off",
    drift: "failed_in_maas",
  } as const;
  const failedAt = (failedStage: string | null, known: Partial<NonNullable<WatchedNode["known"]>> = {}) =>
    aNode({
      ...{ state: "enrolling", failedStage },
      known: { ...shown, observed: "Failed", verdict: "report", idleRun: "r1", ...known },
    });
  const ledOn = (node: WatchedNode, machine: MaasMachine) => isLedOn(judgeNode(node, machine, false));

  test("where people have led its machine on since", () => {
    expect(ledOn(failedAt("wait_for_ready"), READY)).toBe(true);
    expect(ledOn(failedAt("wait_for_deployed"), DEPLOYED)).toBe(true);
  });

  test.each<[string, WatchedNode, MaasMachine]>([
    ["while MAAS shows what the job has left", failedAt("wait_for_ready"), FAILED],
    ["where nobody saw the machine after the job had ended", failedAt("wait_for_ready", { idleRun: null }), READY],
    ["where that was seen after an earlier job", failedAt("wait_for_ready", { idleRun: "r0" }), READY],
    ["where it was another machine", failedAt("wait_for_ready", { systemId: "other1" }), READY],
    ["where a person is needed, or nothing failed", failedAt(null), READY],
    ["where MAAS has nothing to do with the stage", failedAt("wait_for_agent_enrollment"), READY],
    ["where somebody else has deployed the machine", failedAt("wait_for_ready"), DEPLOYED],
    ["while a job is under way", { ...failedAt("wait_for_ready"), hasActiveRun: true }, READY],
    ["where the node is in use", { ...failedAt("wait_for_deployed"), state: "active" }, DEPLOYED],
  ])("but not %s", (_what, node, machine) => {
    expect(ledOn(node, machine)).toBe(false);
  });
});

test("a machine that is not in the listing is asked for once", () => {
  expect(isNewlyAbsent(aNode(), undefined)).toBe(true);
  expect(isNewlyAbsent(aNode(), DEPLOYED)).toBe(false);
  const known = {
    systemId: "abc123",
    observed: "absent",
    statusName: "",
    power: "unknown",
    drift: null,
    idleRun: null,
  } as const;
  expect(isNewlyAbsent(aNode({ known: { ...known, verdict: "fine" } }), undefined)).toBe(false);
  expect(isNewlyAbsent(aNode({ systemId: "other1", known: { ...known, verdict: "fine" } }), undefined)).toBe(true);
});

test("a MAAS that shows most nodes of a site as gone at once is doubted; a few, or a part of many, are believed", () => {
  const some = (count: number, machine: MaasMachine, state: FleetNodeState = "active") =>
    Array.from({ length: count }, () => judgeNode(aNode({ state }), machine, false));
  expect(isTooMuch(some(10, READY))).toBe(false);
  expect(isTooMuch(some(11, READY))).toBe(true);
  expect(isTooMuch([...some(11, READY), ...some(11, DEPLOYED)])).toBe(false);
  expect(isTooMuch([...some(12, READY), ...some(11, DEPLOYED)])).toBe(true);
  expect(isTooMuch([...some(12, READY), ...some(50, DEPLOYED, "retired")])).toBe(true);
});
