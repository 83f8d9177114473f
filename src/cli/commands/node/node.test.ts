import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FakeRest, Refusal, startFakeRest } from "../../../../test/support/cli/fake-rest.ts";

let rest: FakeRest;
beforeEach(async () => {
  rest = await startFakeRest();
});
afterEach(() => rest.close());

const now = new Date("2026-01-21T12:00:00Z");
const NODE = {
  id: "m-1",
  mac_address: "02:00:00:00:00:01",
  hostname: "rack1-01",
  ip_address: "10.0.0.9",
  state: "installing",
  workflow_id: "ubuntu",
  effective_workflow_id: "ubuntu",
  group_id: null,
  tags: ["gpu"],
  arch: "x86_64",
  boot_mode: "uefi",
  install_attempts: 1,
  last_install_error: "no disk",
  installation_progress: 40,
  state_changed_at: "2026-01-21T11:55:00Z",
  last_seen_at: "2026-01-21T11:59:00Z",
  erased_disks: [{ disk: "/dev/sda", serial: null, method: "overwrite", verified: true }],
  installation_steps: [
    { sequence: 1, name: "find disks", type: "disk_scan", state: "completed", attempts: 1, message: "/dev/sda" },
    { sequence: 5, name: "write", type: "boot", state: "retrying", attempts: 2, message: "not done within 60 s" },
  ],
};
const GROUP = { id: "g-1", name: "gpu", parent_id: null, depth: 0 };
const one = (data: object) => ({ success: true, data, message: null });
const many = (...data: object[]) => ({ success: true, data, total: data.length });
const sent = () => rest.calls.map(({ method, path, body }) => [method, path, body]);

describe("reading", () => {
  test("`node list` turns all pages, with the filters and the token, and names groups by name", async () => {
    rest.answers.set("GET /api/v1/groups", many(GROUP));
    rest.answers.set("GET /api/v1/nodes", ({ path }: { path: string }) =>
      path.includes("offset=0") ? { ...many(NODE), total: 2 } : { ...many({ ...NODE, id: "m-2" }), total: 2 },
    );
    const { code, out } = await rest.run("node list --state installing --group gpu --tag gpu", { now });
    expect(code).toBe(0);
    expect(out).toMatch(
      /m-1 +02:00:00:00:00:01 +rack1-01 +installing +5m +40 %, write \(2 of 2\), 1 failed +ubuntu +gpu[\s\S]*m-2/,
    );
    expect(rest.calls[1]).toMatchObject({
      path: "/api/v1/nodes?state=installing&group_id=g-1&tag=gpu&limit=1000&offset=0",
      authorization: "Bearer tok",
    });
    expect(rest.calls).toHaveLength(3);
  });

  test("`node show` has the node with its latest history", async () => {
    rest.answers.set("GET /api/v1/nodes/m-1", one(NODE));
    rest.answers.set("GET /api/v1/nodes/m-1/history", {
      total: 1,
      data: [
        {
          id: "1",
          from_state: "pending",
          to_state: "installing",
          triggered_by: "node_report",
          user_id: null,
          comment: null,
          metadata: null,
          created_at: "2026-01-21T11:55:00Z",
        },
      ],
    });
    const { out } = await rest.run("node show m-1", { now });
    expect(out).toMatch(
      /State: +installing, for 5m[\s\S]*Last error: +no disk\nErased: +\/dev\/sda \(overwrite, read back\)[\s\S]*pending +installing +node_report/,
    );
  });

  test("`node show` names the group, the workflow that it lends, and says why in words", async () => {
    const inherits = { ...NODE, group_id: "g-1", workflow_id: null, effective_workflow_id: "debian" };
    rest.answers.set("GET /api/v1/nodes/m-1", one(inherits));
    rest.answers.set("GET /api/v1/groups/g-1", one(GROUP));
    const failed = { id: "1", from_state: "installing", to_state: "install_failed", triggered_by: "node_report" };
    const why = { user_id: null, comment: null, metadata: { error: "no disk", attempt: 3 } };
    rest.answers.set("GET /api/v1/nodes/m-1/history", {
      total: 1,
      data: [{ ...failed, ...why, created_at: "2026-01-21T11:55:00Z" }],
    });
    const { out } = await rest.run("node show m-1", { now });
    expect(out).toMatch(/Workflow: +debian \(inherited\)\nGroup: +gpu\n/);
    expect(out).toContain("error: no disk, attempt: 3");
  });

  test("`node stalled` and `node stats` say so when there is nothing", async () => {
    rest.answers.set("GET /api/v1/nodes/stalled", many());
    expect((await rest.run("node stalled")).err).toBe("No node is stalled.\n");
    rest.answers.set("GET /api/v1/nodes/stats", one({ by_state: { discovered: 2, active: 5 } }));
    expect((await rest.run("node stats -o csv")).out).toBe("state,nodes\ndiscovered,2\nactive,5\n");
  });
});

describe("changing", () => {
  test("`node approve --workflow` assigns and approves in one request: both are done, or neither", async () => {
    rest.answers.set("GET /api/v1/nodes/m-1", one({ ...NODE, state: "discovered" }));
    rest.answers.set("PATCH /api/v1/nodes/m-1/state", one(NODE));
    const { out } = await rest.run(["node", "approve", "m-1", "--workflow", "ubuntu", "--comment", "racked"]);
    expect(out).toBe("Node m-1 is pending.\n");
    expect(sent().slice(1)).toEqual([
      ["PATCH", "/api/v1/nodes/m-1/state", { state: "pending", comment: "racked", workflow_id: "ubuntu" }],
    ]);
  });

  test("`node set` with nothing to set says so, and sends nothing", async () => {
    const { code, err } = await rest.run("node set m-1");
    expect([code, err]).toEqual([2, expect.stringContaining("--workflow")]);
    expect(sent()).toEqual([]);
  });

  test("a node that is let go on without what it needs next is told with the command for it", async () => {
    const bare = { ...NODE, workflow_id: null, effective_workflow_id: null };
    rest.answers.set("GET /api/v1/nodes/m-1", one({ ...bare, state: "discovered" }));
    rest.answers.set("PATCH /api/v1/nodes/m-1/state", one({ ...bare, state: "pending" }));
    expect((await rest.run("node approve m-1")).out).toContain("millwright node set m-1 --workflow <id>");
    rest.answers.set("PATCH /api/v1/nodes/m-1/state", one({ ...bare, state: "reprovision" }));
    expect((await rest.run("node reprovision m-1")).out).toContain("millwright node requeue m-1");
  });

  test.each([
    ["activate m-1", { state: "active" }],
    ["reprovision m-1", { state: "reprovision" }],
    ["deprovision m-1 --yes", { state: "deprovisioning" }],
    ["retire m-1 -y", { state: "retired" }],
    ["migrate m-1 --replacement m-2", { state: "migrating", replacement_id: "m-2" }],
  ])("`node %s` asks for its state", async (line, body) => {
    rest.answers.set("PATCH /api/v1/nodes/m-1/state", one(NODE));
    expect((await rest.run(`node ${line}`)).code).toBe(0);
    expect(sent()).toEqual([["PATCH", "/api/v1/nodes/m-1/state", body]]);
  });

  test.each([
    ["approve m-1", "discovered", {}],
    ["requeue m-1 --workflow ubuntu", "reprovision", { workflow_id: "ubuntu" }],
    ["retry m-1 --force", "install_failed", { force: true }],
  ])("`node %s` lets a node install that is %s, and no other", async (line, from, more) => {
    rest.answers.set("PATCH /api/v1/nodes/m-1/state", one({ ...NODE, state: "pending" }));
    rest.answers.set("GET /api/v1/nodes/m-1", one({ ...NODE, state: "installed" }));
    const refused = await rest.run(`node ${line}`);
    expect([refused.code, refused.err]).toEqual([
      4,
      expect.stringContaining(`is installed; this is for one that is ${from}`),
    ]);
    rest.answers.set("GET /api/v1/nodes/m-1", one({ ...NODE, state: from }));
    expect((await rest.run(`node ${line}`)).code).toBe(0);
    expect(sent().filter(([method]) => method === "PATCH")).toEqual([
      ["PATCH", "/api/v1/nodes/m-1/state", { state: "pending", ...more }],
    ]);
  });

  test("`node confirm-erased` asks for the node's id, and vouches", async () => {
    rest.answers.set("POST /api/v1/nodes/m-1/confirm-erased", one({ ...NODE, state: "retired" }));
    const refused = await rest.run("node confirm-erased m-1");
    expect([refused.code, refused.err]).toEqual([
      2,
      expect.stringContaining("Vouch that all disks of node m-1 are erased"),
    ]);
    expect(sent()).toEqual([]);
    const { code, out } = await rest.run(["node", "confirm-erased", "m-1", "--comment", "shredded", "--yes"]);
    expect([code, out]).toEqual([0, "Node m-1 is retired: confirmed as erased.\n"]);
    expect(sent()).toEqual([["POST", "/api/v1/nodes/m-1/confirm-erased", { comment: "shredded" }]]);
  });

  test("`node arm` takes many nodes", async () => {
    for (const id of ["m-1", "m-2"]) rest.answers.set(`POST /api/v1/nodes/${id}/arm`, one({ ...NODE, id }));
    const { code, out } = await rest.run("node arm m-1 m-2");
    expect([code, out.split("\n").length]).toEqual([0, 3]);
    expect(sent()).toEqual(["m-1", "m-2"].map((id) => ["POST", `/api/v1/nodes/${id}/arm`, {}]));
  });

  test("`node register`, `set`, `tag` and `untag` send what was said, and an empty text clears", async () => {
    rest.answers.set("POST /api/v1/nodes", one(NODE));
    rest.answers.set("PATCH /api/v1/nodes/m-1", one(NODE));
    rest.answers.set("POST /api/v1/nodes/m-1/tags", one(NODE));
    rest.answers.set("DELETE /api/v1/nodes/m-1/tags/gpu", one(NODE));
    await rest.run("node register --mac 02-00-00-00-00-01 --boot-mode uefi");
    await rest.run(["node", "set", "m-1", "--workflow", "", "--hostname", "new"]);
    await rest.run("node tag m-1 gpu");
    await rest.run("node untag m-1 gpu");
    expect(sent()).toEqual([
      ["POST", "/api/v1/nodes", { mac_address: "02-00-00-00-00-01", boot_mode: "uefi" }],
      ["PATCH", "/api/v1/nodes/m-1", { workflow_id: null, hostname: "new" }],
      ["POST", "/api/v1/nodes/m-1/tags", { tag: "gpu" }],
      ["DELETE", "/api/v1/nodes/m-1/tags/gpu", undefined],
    ]);
  });
});

describe("what the server refuses", () => {
  test.each([
    [404, { detail: "Node not found" }, 3, "Node not found"],
    [422, { detail: [{ type: "x", loc: ["body"], msg: "Unrecognized key" }] }, 2, "error: Unrecognized key"],
    [400, { detail: "Cannot transition from active to pending." }, 4, "Cannot transition"],
    [409, { detail: "Tag exists" }, 4, "Tag exists"],
    [401, { detail: "no credentials" }, 5, "--token-file"],
    [403, { detail: "not allowed" }, 5, "hint: ask an administrator"],
    [
      422,
      { detail: [{ type: "x", loc: ["body", "steps", 0, "name"], msg: "is required" }] },
      2,
      "steps.0.name: is required",
    ],
    [502, "<html>", 6, "did not answer as Millwright does"],
  ])("%i is told in a line, with the exit code of its sort", async (status, body, code, text) => {
    rest.answers.set("GET /api/v1/nodes/m-1", new Refusal(status, body));
    const run = await rest.run("node show m-1");
    expect(run.code).toBe(code);
    expect(run.err).toContain(text);
    expect(run.out).toBe("");
  });

  test.each([
    [
      "millwright workflow list (none is called 50%25 %E4%BD%A0)",
      "hint: millwright workflow list (none is called 50% 你)",
    ],
    ["50% off", "error: Workflow not found: x"],
  ])("what helps next is told as the server names it: %s", async (next, text) => {
    const refusal = new Refusal(404, { detail: "Workflow not found: x" }, { "millwright-next": next });
    rest.answers.set("GET /api/v1/nodes/m-1", refusal);
    const run = await rest.run("node show m-1");
    expect(run.code).toBe(3);
    expect(run.err).toContain(text);
  });
});
