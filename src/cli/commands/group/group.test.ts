import { afterEach, beforeEach, expect, test } from "vitest";
import { type FakeRest, startFakeRest } from "../../../../test/support/cli/fake-rest.ts";

let rest: FakeRest;
beforeEach(async () => {
  rest = await startFakeRest();
});
afterEach(() => rest.close());

const group = (id: string, name: string, more: object = {}) => ({
  id,
  name,
  description: "",
  parent_id: null,
  depth: 0,
  default_workflow_id: null,
  auto_provision: null,
  auto_promote: null,
  effective_workflow_id: "ubuntu",
  effective_auto_provision: true,
  effective_auto_promote: false,
  ...more,
});
const ROWS = [
  group("g-a", "alpha", { auto_provision: true, default_workflow_id: "ubuntu" }),
  group("g-b", "beta"),
  group("g-c", "child", { parent_id: "g-a", depth: 1 }),
];
const many = (...data: object[]) => ({ success: true, data, total: data.length });
const one = (data: object) => ({ success: true, data, message: null });
const last = () => rest.calls.at(-1);

test("`group list` draws the tree, with what each group comes to", async () => {
  rest.answers.set("GET /api/v1/groups", many(...ROWS));
  const { out } = await rest.run("group list");
  expect(out).toMatch(/alpha +g-a +ubuntu +yes +no[\s\S]*\n {2}child +g-c[\s\S]*\nbeta/);
  expect(JSON.parse((await rest.run("group list -o json")).out)).toHaveLength(3);
  await rest.run("group list --parent alpha");
  expect(last()?.path).toBe("/api/v1/groups?parent_id=g-a&limit=1000&offset=0");
  await rest.run("group list --roots");
  expect(last()?.path).toBe("/api/v1/groups?root_only=true&limit=1000&offset=0");
});

test("`group show` tells what is its own and what it inherits", async () => {
  rest.answers.set("GET /api/v1/groups", many(...ROWS));
  rest.answers.set("GET /api/v1/groups/g-c/ancestors", many(ROWS[0] ?? {}));
  rest.answers.set("GET /api/v1/groups/g-c/nodes", { ...many(), total: 7 });
  const { out } = await rest.run("group show child");
  expect(out).toMatch(
    /In: +alpha\n[\s\S]*Workflow: +ubuntu \(inherited\)\n[\s\S]*Auto-provision: +yes \(inherited\)\n[\s\S]*Nodes: +7/,
  );
});

test("`group create` and `set` send what was said and nothing else; `delete` goes by name too", async () => {
  rest.answers.set("GET /api/v1/groups", many(...ROWS));
  rest.answers.set("POST /api/v1/groups", one(group("g-n", "new")));
  rest.answers.set("PATCH /api/v1/groups/g-b", one(group("g-b", "beta2")));
  rest.answers.set("DELETE /api/v1/groups/g-b", { success: true, data: null, message: "Group deleted successfully" });
  const made = await rest.run("group create new --parent alpha --workflow ubuntu --auto-promote yes");
  expect(made.out).toBe("Group new created, as g-n.\n");
  expect(last()?.body).toEqual({
    name: "new",
    parent_id: "g-a",
    default_workflow_id: "ubuntu",
    auto_promote: true,
  });
  await rest.run(["group", "set", "beta", "--name", "beta2", "--parent", "", "--auto-provision", "inherit"]);
  expect(last()?.body).toEqual({ name: "beta2", parent_id: null, auto_provision: null });
  expect((await rest.run("group delete beta --yes")).out).toBe("Group beta deleted.\n");
});

test("a group that does not exist is said so, with what helps", async () => {
  rest.answers.set("GET /api/v1/groups", many());
  const { code, err } = await rest.run("group show nowhere");
  expect(code).toBe(3);
  expect(err).toMatch(/there is no group nowhere[\s\S]*millwright group list/);
});
