import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/kernel/errors.ts";
import { previewDecommission, retireNode } from "../../../src/services/fleet/decommission.ts";
import {
  abortDrain,
  quarantineNode,
  reactivateNode,
  recoverNode,
  rollbackRemoval,
} from "../../../src/services/fleet/node-verbs.ts";
import { onboardNodes } from "../../../src/services/fleet/onboard-many.ts";
import { type MovePreview, type MoveWord, previewMove } from "../../../src/services/fleet/previews/move-preview.ts";
import { previewOnboardings } from "../../../src/services/fleet/previews/onboard-many-preview.ts";
import { setProfile } from "../../../src/services/fleet/profiles.ts";
import { dumpDatabase } from "../../support/database-dump.ts";
import { insertNode, placeNode } from "../../support/fleet/fleet-node.ts";
import { type OnboardingBench, openOnboardingBench, SITE } from "../../support/fleet/onboarding-bench.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Nobody carries anything out, so that whatever changes was changed by the call. */
let bench: OnboardingBench;
beforeAll(async () => {
  bench = await openOnboardingBench({ hosts: 4, isIdle: true });
  await setProfile(bench.deps, tester, { site: SITE, name: "h100", policy: {} });
});
afterAll(() => bench.close());

const CALLS = {
  quarantine: quarantineNode,
  recover: recoverNode,
  reactivate: reactivateNode,
  "drain-abort": abortDrain,
  "remove-rollback": rollbackRemoval,
} as const;

/** Does it, and proves that it changed nothing, here or in MAAS. */
async function unchanged<T>(work: () => Promise<T>): Promise<T> {
  const { db } = bench.deps;
  const before = [await dumpDatabase(db), await bench.machines()];
  const answer = await work();
  expect([await dumpDatabase(db), await bench.machines()]).toEqual(before);
  return answer;
}

const errorOf = async (
  work: Promise<unknown>,
): Promise<{ kind: string; message: string; next: string | undefined }> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error(`it was not refused: ${String(error)}`);
  return { kind: error.kind, message: error.message, next: error.detail.next };
};

const preview = (node: string, move: string, comment = ""): Promise<MovePreview> =>
  unchanged(() => previewMove(bench.deps, { node, move, comment }));
const call = (node: string, move: MoveWord, comment = "") => CALLS[move](bench.deps, tester, { node, comment });
const stateOf = async (id: string) => (await bench.node(id)).state.name;

let count = 0;
async function aNode(state: string, facts: object = {}): Promise<string> {
  const { id } = await insertNode(bench.deps.db, `m-preview-${++count}`);
  await placeNode(bench.deps.db, id, state);
  await bench.deps.db.execute("update fleet_nodes set facts = $2 where id = $1", [id, JSON.stringify(facts)]);
  return id;
}

describe("a preview of a move says where the call leads, and writes nothing", () => {
  test.each<[MoveWord, string, string, string]>([
    ["quarantine", "active", "fan 3 stands still", "quarantined"],
    ["quarantine", "offline", "odd", "quarantined"],
    ["recover", "quarantined", "", "active"],
    ["reactivate", "retired", "", "offline"],
    ["drain-abort", "draining", "", "offline"],
    ["remove-rollback", "removing", "", "retired"],
  ])("%s of a node that is %s", async (move, from, comment, to) => {
    const id = await aNode(from);
    expect(await preview(id, move, comment)).toMatchObject({ node: { id, state: { name: from } }, to, notes: [] });
    await call(id, move, comment);
    expect(await stateOf(id)).toBe(to);
  });

  test.each<[MoveWord, string, string]>([
    ["quarantine", "retired", "odd"],
    ["quarantine", "active", ""],
    ["recover", "offline", ""],
    ["reactivate", "active", ""],
    ["drain-abort", "active", ""],
    ["remove-rollback", "retired", ""],
  ])("%s of a node that is %s is refused as the call is", async (move, from, comment) => {
    const id = await aNode(from);
    const refused = await errorOf(preview(id, move, comment));
    expect(await errorOf(call(id, move, comment))).toEqual(refused);
  });

  test("a word that is no move is refused, and names those that are", async () => {
    const id = await aNode("active");
    expect((await errorOf(preview(id, "explode"))).message).toContain("quarantine, recover, reactivate, drain-abort");
  });

  test("what is so already would not change", async () => {
    const id = await aNode("quarantined", { quarantineReason: "odd" });
    expect(await preview(id, "quarantine", "odd")).toMatchObject({
      to: "quarantined",
      notes: ["nothing would change"],
    });
    expect(await preview(await aNode("active"), "recover")).toMatchObject({ to: "active" });
  });

  test("a retirement shows its stages; while its job is under way nothing else is possible but its abort", async () => {
    const id = await aNode("active");
    const { stages, allocations } = await unchanged(() =>
      previewDecommission(bench.deps, { node: id, mode: "retire" }),
    );
    expect(stages.map(({ stage }) => stage)).toEqual(["disable_node", "drain_node", "retire_gpuaas_node"]);
    expect(allocations).toEqual([]);
    const runId = await retireNode(bench.deps, tester, { node: id, requestId: "retire-previewed", comment: "" });
    expect((await errorOf(preview(id, "quarantine", "odd"))).message).toContain("cancel it first");
    const second = { node: id, mode: "retire" };
    expect((await errorOf(unchanged(() => previewDecommission(bench.deps, second)))).message).toContain("is draining");
    const { to, notes } = await preview(id, "drain-abort");
    expect([to, notes]).toEqual([
      "offline",
      [`run ${runId} would be canceled, as millwright fleet action ${id} cancel does`],
    ]);
  });

  test("a decommission of a node with another job is refused in the preview as well", async () => {
    const id = await aNode("active");
    await retireNode(bench.deps, tester, { node: id, requestId: "retire-busy", comment: "" });
    await placeNode(bench.deps.db, id, "active");
    const asked = { node: id, mode: "soft_reset" };
    expect((await errorOf(unchanged(() => previewDecommission(bench.deps, asked)))).message).toContain("an active job");
  });

  test("a reactivation looks in MAAS: a machine that is off would be switched on, one without a system is refused", async () => {
    const host = bench.nextHost();
    const { system_id: systemId } = await bench.maas.control<{ system_id: string }>(
      "POST",
      `/maas/hosts/${host.id}/discover`,
      {},
    );
    const id = await aNode("retired", { systemId });
    const lost = await errorOf(preview(id, "reactivate"));
    expect(lost).toMatchObject({ next: `millwright fleet decommission ${id} --mode reimage` });
    expect(await errorOf(call(id, "reactivate"))).toEqual(lost);
    const deployed = { system_id: systemId, hostname: "gpu", status: 6, status_name: "Deployed", power_state: "off" };
    await bench.maas.control("POST", "/faults", {
      ...{ device: "maas", path: `/MAAS/api/2.0/machines/${systemId}/` },
      fault: { type: "status", status: 200, body: deployed },
    });
    expect(await preview(id, "reactivate")).toMatchObject({
      to: "offline",
      notes: [`MAAS would switch machine ${systemId} on`],
    });
    await bench.maas.control("DELETE", "/faults");
  });
});

describe("a preview of a batch", () => {
  const row = (hostname: string, ipmiIp: string, more: object = {}) => ({
    ...{ site: SITE, profile: "h100", sku: "gpu8", hostname, ipmiIp, mode: "" },
    ...more,
  });

  test("tells of each row what onboarding it would do, in their order", async () => {
    const host = bench.nextHost();
    await bench.maas.control("POST", `/maas/hosts/${host.id}/discover`, { hostname: "gpu-known" });
    const taken = await aNode("active");
    const { hostname } = await bench.node(taken);
    const rows = await unchanged(() =>
      previewOnboardings(bench.deps, tester, [
        ...Array.from({ length: 20 }, (_, at) => row(`gpu-new-${at}`, `10.9.1.${at + 1}`)),
        row("gpu-known", host.ipmi_address),
        row(hostname, "10.9.2.1"),
        row("gpu-odd", "10.9.2.2", { profile: "b200" }),
      ]),
    );
    expect(rows.map((each) => each.hostname).slice(0, 20)).toEqual(
      Array.from({ length: 20 }, (_, at) => `gpu-new-${at}`),
    );
    for (const each of rows.slice(0, 20))
      expect(each).toMatchObject({ obstacles: [], registersMachine: true, maas: { outcome: "create" }, stages: [] });
    const [known, twin, odd] = rows.slice(20);
    expect(known).toMatchObject({ hostname: "gpu-known", obstacles: [], maas: { outcome: "adopt" } });
    expect(twin?.obstacles[0]?.message).toContain(taken);
    expect(odd?.obstacles[0]?.message).toContain("has no profile b200");
  });

  test.each<[string, readonly ReturnType<typeof row>[]]>([
    ["a row that is wrong", [row("gpu-1", "10.9.3.1"), row("GPU 2", "10.9.3.2")]],
    ["an address that is there twice", [row("gpu-1", "10.9.3.1"), row("gpu-2", "10.9.3.1")]],
    ["no row", []],
  ])("with %s is refused as the call is", async (_what, nodes) => {
    const refused = await errorOf(unchanged(() => previewOnboardings(bench.deps, tester, nodes)));
    expect(await errorOf(onboardNodes(bench.deps, tester, { requestId: "previewed", nodes }))).toEqual(refused);
  });
});
