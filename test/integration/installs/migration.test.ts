import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { explain } from "../../../src/services/explain/explain.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { loadInstalls } from "../../../src/store/install/installs.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { allThings, explainersOf } from "../../../src/wiring/things/all-things.ts";
import { eventually } from "../../support/eventually.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Node, startInstalls } from "./installs-under-test.ts";

let api: InstallsUnderTest;
let group: { readonly id: string };
beforeAll(async () => {
  api = await startInstalls({ engine: true });
  await api.ask("POST", "/api/v1/workflows", WORKFLOW);
  await api.ask("POST", "/api/v1/workflows", { ...WORKFLOW, id: "other", name: "Other" });
  group = await api.ask("POST", "/api/v1/groups", { name: "web", default_workflow_id: "ubuntu" });
});
afterAll(() => api.close());

const WORKFLOW = {
  id: "ubuntu",
  name: "Ubuntu",
  os_family: "linux",
  architecture: "x86_64",
  boot_mode: "any",
  boot: { method: "chain", chain_url: "/files/a" },
};

/** A node in use, in a group, with a tag, for a customer. */
async function inUse(): Promise<Node> {
  const node = await api.register({ group_id: group.id });
  await api.ask("POST", `/api/v1/nodes/${node.id}/tags`, { tag: "blue" });
  await api.db.execute("update machines set customer_id = 'acme', target_cluster = 'c1' where id = $1", [node.id]);
  for (const state of ["pending", "installing", "installed", "active"]) await api.move(node.id, state);
  return node;
}
const migrate = (id: string, replacement?: string) =>
  api.call<{ detail: string }>("PATCH", `/api/v1/nodes/${id}/state`, {
    state: "migrating",
    ...(replacement !== undefined && { replacement_id: replacement }),
  });
const nodeOf = (id: string) => api.ask<Node>("GET", `/api/v1/nodes/${id}`);
async function assignmentsOf(id: string) {
  const { group_id, workflow_id, tags } = await nodeOf(id);
  const [machine] = (await machineStore.load(api.db, [id])).things;
  return { group_id, workflow_id, tags, customer: machine?.spec.customerId, cluster: machine?.spec.targetCluster };
}
const NOTHING = { group_id: null, workflow_id: null, tags: [], customer: null, cluster: null };
const wholeOf = () => ({ group_id: group.id, workflow_id: null, tags: ["blue"], customer: "acme", cluster: "c1" });

describe("a migration", () => {
  test("gives the replacement all that the node is there for, has it installed, and ends when that is active", async () => {
    const node = await inUse();
    const spare = await api.register();
    await api.ask("POST", `/api/v1/nodes/${spare.id}/tags`, { tag: "fast" });
    expect((await migrate(node.id, spare.id)).status).toBe(200);
    expect(await nodeOf(node.id)).toMatchObject({ state: "migrating" });
    expect(await assignmentsOf(node.id)).toEqual(NOTHING);
    expect(await assignmentsOf(spare.id)).toEqual({ ...wholeOf(), tags: ["blue", "fast"] });
    expect(await nodeOf(spare.id)).toMatchObject({ state: "pending" });
    expect((await api.history(spare.id)).data[0]).toMatchObject({
      to_state: "pending",
      triggered_by: "system",
      metadata: { caused_by: `install ${node.id}` },
    });

    const explained = async (id: string) =>
      (await explain({ ...api.deps, explainers: explainersOf(allThings) }, { kind: "install", id })).headline;
    expect(await explained(node.id)).toContain(`machine ${spare.id} takes its place`);
    expect(await explained(spare.id)).toContain(`it takes the place of node ${node.id}`);

    await api.report(spare.mac_address, "started");
    await api.report(spare.mac_address, "complete");
    expect(await nodeOf(node.id)).toMatchObject({ state: "migrating" });
    await api.move(spare.id, "active");
    await eventually(async () => (await nodeOf(node.id)).state === "active", { what: "the migration is over" });
    expect(await assignmentsOf(node.id)).toEqual(NOTHING);
    const [last, first] = (await api.history(node.id)).data;
    expect(last).toMatchObject({ from_state: "migrating", to_state: "active", triggered_by: "system" });
    expect(first).toMatchObject({
      to_state: "migrating",
      triggered_by: "admin",
      metadata: { replacement_id: spare.id },
    });
  });

  test("also ends by a first boot that promotes, without anybody", async () => {
    const promoting = await api.ask<{ id: string }>("POST", "/api/v1/groups", {
      name: "promoting",
      default_workflow_id: "ubuntu",
      auto_promote: true,
    });
    const node = await inUse();
    await api.ask("PATCH", `/api/v1/nodes/${node.id}`, { group_id: promoting.id });
    const spare = await api.register();
    expect((await migrate(node.id, spare.id)).status).toBe(200);
    for (const status of ["started", "complete"]) await api.report(spare.mac_address, status);
    await api.report(spare.mac_address, undefined, { event: "first_boot" });
    await eventually(async () => (await nodeOf(node.id)).state === "active", { what: "the migration is over" });
  });

  test("makes an install for a machine that has none", async () => {
    const node = await inUse();
    const id = `m-${randomUUID().slice(0, 8)}`;
    await registerMachine(api.deps, tester, { id, labels: {}, spec: { ...SPEC, macAddresses: ["06:00:00:00:00:01"] } });
    expect((await migrate(node.id, id)).status).toBe(200);
    expect(await nodeOf(id)).toMatchObject({ state: "pending", mac_address: "06:00:00:00:00:01", group_id: group.id });
  });

  test("that is called off by hand gives back what was moved, and keeps what people changed meanwhile", async () => {
    const node = await inUse();
    const spare = await api.register({
      group_id: (await api.ask<{ id: string }>("POST", "/api/v1/groups", { name: "spares" })).id,
    });
    const before = await assignmentsOf(spare.id);
    expect((await migrate(node.id, spare.id)).status).toBe(200);
    await api.ask("POST", `/api/v1/nodes/${spare.id}/tags`, { tag: "new" });
    await api.move(node.id, "active", { comment: "called off" });
    expect(await assignmentsOf(node.id)).toEqual(wholeOf());
    expect(await assignmentsOf(spare.id)).toEqual({ ...before, tags: ["new"] });
    expect(await nodeOf(spare.id), "nothing is installed on it after all").toMatchObject({ state: "discovered" });
  });

  test("cannot be called off while the replacement is being installed, and nothing is undone once that is active", async () => {
    const node = await inUse();
    const spare = await api.register();
    expect((await migrate(node.id, spare.id)).status).toBe(200);
    await api.report(spare.mac_address, "started");
    const refused = await api.call<{ detail: string }>("PATCH", `/api/v1/nodes/${node.id}/state`, { state: "active" });
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      expect.stringContaining(`install ${spare.id} works on`),
    ]);
    await api.report(spare.mac_address, "complete");
    await api.move(spare.id, "active");
    await eventually(async () => (await nodeOf(node.id)).state === "active", { what: "the migration is over" });
    expect(await assignmentsOf(spare.id)).toEqual(wholeOf());
  });
});

describe("a replacement is refused, and nothing is changed,", () => {
  const cases: readonly (readonly [string, (node: Node) => Promise<string | undefined>, RegExp])[] = [
    ["when none is named", async () => undefined, /replacement_id: is required/],
    ["when it is the node itself", async ({ id }) => id, /a machine cannot replace itself/],
    ["when it does not exist", async () => "m-nothing", /m-nothing does not exist/],
    [
      "when its machine is retired",
      async () => {
        const { id } = await api.register();
        await api.db.execute("update machines set state = 'RETIRED' where id = $1", [id]);
        return id;
      },
      /is RETIRED/,
    ],
    [
      "when its machine serves workloads, and was never installed here",
      async () => {
        const { id } = await api.register();
        await api.db.execute("update machines set state = 'IN_SERVICE' where id = $1", [id]);
        return id;
      },
      /is IN_SERVICE/,
    ],
    [
      "when it is in use itself",
      async () => (await inUse()).id,
      /is active; a replacement must be discovered, pending, installed/,
    ],
    [
      "when something works on it",
      async () => {
        const { id, mac_address } = await api.register();
        await api.move(id, "pending");
        await api.report(mac_address, "started");
        return id;
      },
      /install m-.* works on machine/,
    ],
    [
      "when it takes another's place already",
      async () => {
        const [other, spare] = [await inUse(), await api.register()];
        expect((await migrate(other.id, spare.id)).status).toBe(200);
        return spare.id;
      },
      /already replaces node m-/,
    ],
    [
      "when it is another customer's",
      async () => {
        const { id } = await api.register();
        await api.db.execute("update machines set customer_id = 'other' where id = $1", [id]);
        return id;
      },
      /belongs to customer other/,
    ],
    [
      "when it is installed with something else",
      async () => {
        const { id } = await api.register();
        await api.ask("PATCH", `/api/v1/nodes/${id}`, { workflow_id: "other" });
        for (const state of ["pending", "installing", "installed"]) await api.move(id, state);
        return id;
      },
      /is installed with workflow other; a replacement needs workflow ubuntu/,
    ],
  ];
  test.each(cases)("%s", async (_, choose, why) => {
    const node = await inUse();
    const chosen = await choose(node);
    const before = await assignmentsOf(node.id);
    const answer = await migrate(node.id, chosen);
    expect([400, 404]).toContain(answer.status);
    expect(answer.body.detail).toMatch(why);
    expect(await nodeOf(node.id)).toMatchObject({ state: "active" });
    expect(await assignmentsOf(node.id)).toEqual(before);
  });
});

test("of two nodes that want the same replacement at once, one gets it", { tags: "race" }, async () => {
  const [one, other, spare] = [await inUse(), await inUse(), await api.register()];
  const answers = await Promise.all([migrate(one.id, spare.id), migrate(other.id, spare.id)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
  const states = (await loadInstalls(api.db, [one.id, other.id])).things.map(({ state }) => state.name).sort();
  expect(states).toEqual(["active", "migrating"]);
});

test("two nodes that are each to replace the other do not wait for each other", async () => {
  const [one, other] = [await inUse(), await inUse()];
  const answers = await Promise.all([migrate(one.id, other.id), migrate(other.id, one.id)]);
  expect(answers.map(({ status }) => status)).toEqual([400, 400]);
});

const SPEC = {
  provider: "",
  serial: "",
  rack: "",
  slot: "",
  location: "",
  customerId: "",
  targetClusterRef: "",
  sshEndpoint: "",
  sshHostKey: "",
  jumpHosts: [],
  bmcEndpoint: "",
  bmcProtocol: "",
  bmcTlsTrust: "",
} as const;
