import { describe, expect, test } from "vitest";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { dumpTables } from "../api/forge-under-test.ts";
import { type InstallsUnderTest, type Many, type Node, type One, startInstalls } from "./installs-under-test.ts";

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls();
  for (const id of ["ubuntu", "debian"]) await api.ask("POST", "/api/v1/workflows", { id, name: id, boot });
});
afterAll(() => api.close());

const boot = { method: "kernel", kernel_url: "/files/vmlinuz", initrd_url: "/files/initrd" };
interface Group {
  readonly id: string;
  readonly name: string;
  readonly depth: number;
  readonly path: string;
  readonly [field: string]: unknown;
}
let count = 0;
const make = (more: object = {}) => api.ask<Group>("POST", "/api/v1/groups", { name: `group ${++count}`, ...more });
const patch = (id: string, body: object) => api.ask<Group>("PATCH", `/api/v1/groups/${id}`, body);
const show = (id: string) => api.ask<Group>("GET", `/api/v1/groups/${id}`);
const names = async (path: string) => (await api.call<Many<Group>>("GET", path)).body.data.map(({ name }) => name);

describe("a group", () => {
  test("is made, shown, changed and deleted, with the codes of the contract", async () => {
    const answer = await api.call<One<Group>>("POST", "/api/v1/groups", { name: " gpu ", description: "with cards" });
    expect(answer).toMatchObject({
      status: 201,
      body: {
        success: true,
        data: { name: "gpu", parent_id: null, depth: 0, auto_provision: null, effective_auto_provision: false },
      },
    });
    const { id } = answer.body.data;
    expect(await show(id)).toEqual(answer.body.data);
    expect(await patch(id, { description: null })).toMatchObject({ name: "gpu", description: "" });
    expect(await api.call("POST", "/api/v1/groups", { name: "gpu" })).toMatchObject({ status: 409 });
    const other = await make();
    expect(await api.call("PATCH", `/api/v1/groups/${other.id}`, { name: "gpu" })).toMatchObject({ status: 409 });
    expect(await api.call("DELETE", `/api/v1/groups/${id}`)).toMatchObject({
      status: 200,
      body: { success: true, data: null },
    });
    for (const [method, body] of [["GET"], ["DELETE"], ["PATCH", {}]] as const)
      expect(await api.call(method, `/api/v1/groups/${id}`, body)).toMatchObject({ status: 404 });
    expect(await make({ name: "gpu" })).toMatchObject({ name: "gpu" });
  });

  test("needs a parent and a workflow that exist", async () => {
    const before = await dumpTables(api.db);
    for (const body of [
      { parent_id: "nowhere" },
      { parent_id: "" },
      { default_workflow_id: "none" },
      { default_workflow_id: "" },
    ])
      expect(await api.call("POST", "/api/v1/groups", { name: "orphan", ...body })).toMatchObject({ status: 404 });
    expect(await dumpTables(api.db)).toEqual(before);
  });

  test("with nodes or groups in it is not deleted", async () => {
    const [parent, full] = [await make(), await make()];
    await make({ parent_id: parent.id });
    await api.register({ group_id: full.id });
    for (const [id, what] of [
      [parent.id, "1 group is"],
      [full.id, "1 node is"],
    ] as const)
      expect(await api.call("DELETE", `/api/v1/groups/${id}`)).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining(what) },
      });
  });

  test("that is deleted while a node joins it is either there with the node, or gone", async () => {
    for (let round = 0; round < 8; round += 1) {
      const [group, node] = [await make(), await api.register()];
      const [joined, deleted] = await Promise.all([
        api.call("PATCH", `/api/v1/nodes/${node.id}`, { group_id: group.id }),
        api.call("DELETE", `/api/v1/groups/${group.id}`),
      ]);
      expect([
        [200, 400],
        [404, 200],
      ]).toContainEqual([joined.status, deleted.status]);
    }
  });
});

test("a list of groups without a limit has a thousand, and the true total", async () => {
  await api.db.execute(
    "insert into device_groups (id, name, path) select 'many-' || n, 'many ' || n, '/many-' || n from generate_series(1, 1001) n",
  );
  const [counted] = await api.db.query<{ total: number }>("select count(*)::int as total from device_groups");
  const { data, total } = (await api.call<Many<Group>>("GET", "/api/v1/groups")).body;
  expect([data.length, total]).toEqual([1_000, counted?.total]);
  await api.db.execute("delete from device_groups where id like 'many-%'");
});

describe("nested groups", () => {
  test("inherit what they do not say, the child's word first, also when a group above changes or moves", async () => {
    const root = await make({ default_workflow_id: "ubuntu", auto_provision: true, auto_promote: true });
    const middle = await make({ parent_id: root.id, auto_provision: false });
    const leaf = await make({ parent_id: middle.id });
    expect(leaf).toMatchObject({
      depth: 2,
      path: `/${root.id}/${middle.id}/${leaf.id}`,
      default_workflow_id: null,
      effective_workflow_id: "ubuntu",
      effective_auto_provision: false,
      effective_auto_promote: true,
    });
    await patch(root.id, { default_workflow_id: "debian", auto_promote: null });
    await patch(middle.id, { auto_provision: null });
    expect(await show(leaf.id)).toMatchObject({
      effective_workflow_id: "debian",
      effective_auto_provision: true,
      effective_auto_promote: false,
    });
    await patch(middle.id, { parent_id: null });
    expect(await show(leaf.id)).toMatchObject({
      depth: 1,
      path: `/${middle.id}/${leaf.id}`,
      effective_workflow_id: null,
    });
  });

  test("are never below themselves", async () => {
    const outer = await make();
    const inner = await make({ parent_id: outer.id });
    for (const parent_id of [outer.id, inner.id]) {
      const answer = await api.call("PATCH", `/api/v1/groups/${outer.id}`, { parent_id });
      expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining("below itself") } });
    }
    expect(await show(outer.id)).toEqual(outer);
  });

  test("go sixteen deep and no deeper, however the tree is put together", async () => {
    let last = await make();
    for (let depth = 1; depth < 16; depth += 1) last = await make({ parent_id: last.id });
    expect(last.depth).toBe(15);
    const tooDeep = await api.call("POST", "/api/v1/groups", { name: "too deep", parent_id: last.id });
    expect(tooDeep).toMatchObject({ status: 400, body: { detail: expect.stringContaining("16 deep") } });
    const pair = await make();
    await make({ parent_id: pair.id });
    const fourteenth = last.path.split("/").at(-2) ?? "";
    expect(await api.call("PATCH", `/api/v1/groups/${pair.id}`, { parent_id: fourteenth })).toMatchObject({
      status: 400,
    });
  });

  test("show who is above, who is below, and which nodes are in them, in pages", async () => {
    const root = await make({ name: "a root" });
    const left = await make({ name: "b left", parent_id: root.id });
    const right = await make({ name: "c right", parent_id: root.id });
    const leaf = await make({ name: "d leaf", parent_id: left.id });
    expect(await names(`/api/v1/groups/${leaf.id}/ancestors`)).toEqual(["a root", "b left"]);
    expect(await names(`/api/v1/groups/${root.id}/descendants`)).toEqual(["b left", "c right", "d leaf"]);
    expect(await names(`/api/v1/groups/${root.id}/descendants?limit=1&offset=1`)).toEqual(["c right"]);
    expect(await names(`/api/v1/groups?parent_id=${root.id}`)).toEqual(["b left", "c right"]);
    const roots = await names("/api/v1/groups?root_only=true");
    expect(roots).toContain("a root");
    expect(roots).not.toContain("b left");
    const nodes = [await api.register({ group_id: root.id }), await api.register({ group_id: leaf.id })];
    await api.register({ group_id: right.id });
    const inside = async (query: string) =>
      (await api.call<Many<Node>>("GET", `/api/v1/groups/${root.id}/nodes${query}`)).body;
    expect((await inside("")).data.map(({ id }) => id)).toEqual([nodes[0]?.id]);
    expect(await inside("?include_descendants=true&limit=1")).toMatchObject({ total: 3, data: [{ id: nodes[0]?.id }] });
    for (const path of ["ancestors", "descendants", "nodes"])
      expect(await api.call("GET", `/api/v1/groups/nowhere/${path}`)).toMatchObject({ status: 404 });
  });
});

describe("what a group does for its nodes", () => {
  test("auto_provision approves a machine at its first boot, in the group's name", async () => {
    const above = await make({ auto_provision: true });
    const group = await make({ parent_id: above.id });
    api.boot.defaultGroupId = group.id;
    await api.call("GET", "/api/v1/boot?mac=06-00-00-00-00-01", undefined, { as: null });
    api.boot.defaultGroupId = null;
    expect(await api.ask("GET", "/api/v1/nodes/m-060000000001")).toMatchObject({
      state: "pending",
      group_id: group.id,
    });
    expect((await api.history("m-060000000001")).data).toMatchObject([
      {
        from_state: "discovered",
        triggered_by: "system",
        user_id: null,
        metadata: { caused_by: `group ${group.name}` },
      },
    ]);
  });

  test("auto_provision leaves a machine alone that is in use: it is discovered, and people decide", async () => {
    const group = await make({ auto_provision: true, default_workflow_id: "ubuntu" });
    const { id, mac_address: mac } = await api.register();
    await api.db.execute("delete from installs where id = $1", [id]);
    await api.db.execute("update machines set state = 'IN_SERVICE' where id = $1", [id]);
    api.boot.defaultGroupId = group.id;
    const { text } = await api.call("GET", `/api/v1/boot?mac=${mac}`, undefined, { as: null });
    api.boot.defaultGroupId = null;
    expect(text).toContain("booting from disk");
    expect(await api.ask("GET", `/api/v1/nodes/${id}`)).toMatchObject({ state: "discovered", group_id: group.id });
  });

  test("the default group may be given by its name, and one that is gone keeps no machine from being found", async () => {
    const group = await make({ name: "newcomers" });
    for (const [word, mac, groupId] of [
      ["newcomers", "06-00-00-00-00-03", group.id],
      ["gone", "06-00-00-00-00-04", null],
    ] as const) {
      api.boot.defaultGroupId = word;
      const { status } = await api.call("GET", `/api/v1/boot?mac=${mac}`, undefined, { as: null });
      expect(status).toBe(200);
      const id = `m-${mac.replaceAll("-", "")}`;
      expect(await api.ask("GET", `/api/v1/nodes/${id}`)).toMatchObject({ state: "discovered", group_id: groupId });
    }
    api.boot.defaultGroupId = null;
  });

  test("without it a machine awaits approval, and so it is by default", async () => {
    await api.call("GET", "/api/v1/boot?mac=06-00-00-00-00-02", undefined, { as: null });
    expect(await api.ask("GET", "/api/v1/nodes/m-060000000002")).toMatchObject({ state: "discovered" });
  });

  test("auto_promote takes an installed node to active at its first boot; otherwise only people do", async () => {
    const above = await make({ auto_promote: true });
    const [with_, without] = [await make({ parent_id: above.id }), await make()];
    for (const [group, state] of [
      [with_, "active"],
      [without, "installed"],
    ] as const) {
      const node = await api.register({ group_id: group.id });
      await api.place(node.id, "installed");
      expect(await api.report(node.mac_address, undefined, { event: "first_boot" })).toMatchObject({ data: { state } });
    }
  });
});

describe("workflows", () => {
  const step = (sequence: number) => ({
    sequence,
    name: `step ${sequence}`,
    type: "script",
    config: { script: "true" },
  });

  test("are made, listed by what they are for, replaced and deleted", async () => {
    const body = {
      id: "fresh",
      name: "Fresh",
      boot: { ...boot, environment: true },
      architecture: "arm64",
      os_family: "bsd",
      steps: [step(1), step(2)],
    };
    const made = await api.call<One<object>>("POST", "/api/v1/workflows", body);
    expect(made).toMatchObject({
      status: 201,
      body: {
        data: {
          id: "fresh",
          boot_mode: "any",
          next_state: "installed",
          boot: { ...boot, cmdline: "", environment: true },
          steps: [
            {
              sequence: 1,
              timeout_seconds: 300,
              on_failure: "fail",
              max_retries: 0,
              retry_delay_seconds: 30,
              next_state: null,
            },
            { sequence: 2 },
          ],
        },
      },
    });
    expect(await names("/api/v1/workflows?os_family=bsd&architecture=arm64")).toEqual(["Fresh"]);
    expect(await names("/api/v1/workflows?os_family=windows")).toEqual([]);
    expect((await api.call<Many<unknown>>("GET", "/api/v1/workflows?limit=1")).body).toMatchObject({ total: 4 });
    const replaced = await api.ask<object>("PUT", "/api/v1/workflows/fresh", { name: "Fresher", boot });
    expect(replaced).toMatchObject({ name: "Fresher", os_family: "linux", steps: [] });
    expect(await api.call("PUT", "/api/v1/workflows/none", { name: "None", boot })).toMatchObject({ status: 404 });
  });

  test("that are deleted give their names back, and nodes that have them keep them", async () => {
    const node = await api.register();
    await api.ask("POST", "/api/v1/workflows", { id: "soft", name: "Soft", boot });
    await api.ask("PATCH", `/api/v1/nodes/${node.id}`, { workflow_id: "soft" });
    expect(await api.call("POST", "/api/v1/workflows", { name: "Soft", boot })).toMatchObject({ status: 409 });
    expect(await api.call("DELETE", "/api/v1/workflows/soft")).toMatchObject({ status: 200 });
    for (const [method, body] of [["GET"], ["DELETE"], ["PUT", { name: "x", boot }]] as const)
      expect(await api.call(method, "/api/v1/workflows/soft", body)).toMatchObject({ status: 404 });
    expect(await api.ask("GET", `/api/v1/nodes/${node.id}`)).toMatchObject({ workflow_id: "soft" });
    expect(await api.call("POST", "/api/v1/workflows", { name: "Soft", boot })).toMatchObject({ status: 201 });
    expect(await api.call("POST", "/api/v1/workflows", { id: "soft", name: "Other", boot })).toMatchObject({
      status: 409,
    });
  });

  test("have steps with sequences of their own", async () => {
    const body = { name: "Twice", boot, steps: [step(1), step(1)] };
    for (const [method, path] of [
      ["POST", "/api/v1/workflows"],
      ["PUT", "/api/v1/workflows/ubuntu"],
    ] as const)
      expect(await api.call(method, path, body)).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining("steps[1].sequence: 1 is used twice") },
      });
  });
});
