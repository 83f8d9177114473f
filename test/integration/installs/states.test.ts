import { describe, expect, test } from "vitest";
import { hours } from "../../../src/kernel/time/duration.ts";
import { INSTALL_STATES } from "../../../src/lifecycles/install/install.ts";
import { changeNodeState, type WantedState } from "../../../src/services/install/state/state-changes.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { dumpTables } from "../api/forge-under-test.ts";
import { type InstallsUnderTest, type Node, type One, startInstalls } from "./installs-under-test.ts";

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls();
});
afterAll(() => api.close());

const at = (id: string, more = "") => `/api/v1/nodes/${id}${more}`;
const show = (id: string) => api.ask("GET", at(id));
const edges = async (id: string) =>
  (await api.history(id)).data.map(({ from_state, to_state }) => `${from_state} → ${to_state}`).reverse();

const WORKFLOW = {
  name: "for the RPC",
  boot: { method: "sanboot", iso_url: "/files/x.iso" },
};

/** A node that reports of its install. */
async function installing(): Promise<Node> {
  const node = await api.register();
  await api.move(node.id, "pending");
  await api.report(node.mac_address, "started");
  return node;
}
async function failedThrice(): Promise<Node> {
  const node = await installing();
  for (const error of ["no disk", "no disk", "Disk not found"])
    await api.report(node.mac_address, "failed", { installation_error: error });
  return node;
}

test("a comment that is the very word of the verb is shown, and entries keep their ids as others come", async () => {
  const node = await api.register();
  await api.move(node.id, "pending", { comment: "approve" });
  const [first] = (await api.history(node.id)).data;
  expect(first?.comment).toBe("approve");
  await api.report(node.mac_address, "started");
  await api.report(node.mac_address, "complete");
  await api.move(node.id, "active");
  const { data } = await api.history(node.id);
  expect(data[0]?.comment).toBeNull();
  expect(data.at(-1)).toEqual(first);
  expect(new Set(data.map(({ id }) => id)).size).toBe(data.length);
});

describe("the specification's transitions", () => {
  test("discovered → pending → installing → installed → active → reprovision → pending, each with its cause", async () => {
    const node = await api.register();
    await api.move(node.id, "pending", { comment: "racked and cabled" });
    await api.report(node.mac_address, "started");
    await api.report(node.mac_address, "complete");
    await api.move(node.id, "active");
    await api.move(node.id, "reprovision");
    await api.move(node.id, "pending");
    const { data, total } = await api.history(node.id);
    expect(total).toBe(6);
    expect(
      data.map(({ from_state, to_state, triggered_by, user_id, comment }) => [
        `${from_state} → ${to_state}`,
        triggered_by,
        user_id,
        comment,
      ]),
    ).toEqual([
      ["reprovision → pending", "admin", "kim", null],
      ["active → reprovision", "admin", "kim", null],
      ["installed → active", "admin", "kim", null],
      ["installing → installed", "node_report", null, null],
      ["pending → installing", "node_report", null, null],
      ["discovered → pending", "admin", "kim", "racked and cabled"],
    ]);
  });

  test("active → deprovisioning, and active → migrating → active", async () => {
    const [erased, moved, other] = [await api.register(), await api.register(), await api.register()];
    for (const { id } of [erased, moved]) await api.place(id, "active");
    expect(await api.move(erased.id, "deprovisioning")).toMatchObject({ state: "deprovisioning" });
    await api.move(moved.id, "migrating", { replacement_id: other.id });
    expect((await api.history(moved.id)).data[0]).toMatchObject({ metadata: { replacement_id: other.id } });
    expect(await api.move(moved.id, "active")).toMatchObject({ state: "active" });
  });

  test.each(INSTALL_STATES.filter((state) => state !== "retired"))(
    "%s → retired, by whoever decommissions it",
    async (state) => {
      const { id } = await api.register();
      await api.place(id, state);
      expect(await api.move(id, "retired")).toMatchObject({ state: "retired" });
      expect((await api.history(id)).data).toMatchObject([
        { from_state: state, to_state: "retired", triggered_by: "admin" },
      ]);
    },
  );

  test("state_changed_at is when the state was entered", async () => {
    const node = await api.register();
    const { state_changed_at } = await api.move(node.id, "pending");
    expect(Date.parse(String(state_changed_at))).toBeGreaterThan(Date.parse(String(node.state_changed_at)));
    await api.report(node.mac_address, undefined, { hostname: "n1" });
    expect(await show(node.id)).toMatchObject({ state_changed_at });
  });

  /** What an operator can reach, in the specification's order; `installing` → `installed`, … by hand are ours. */
  const REACHABLE: Readonly<Record<string, readonly string[]>> = {
    discovered: ["pending", "retired"],
    pending: ["installing", "retired"],
    installing: ["install_failed", "installed", "retired"],
    install_failed: ["pending", "retired"],
    installed: ["active", "retired"],
    active: ["reprovision", "deprovisioning", "migrating", "retired"],
    reprovision: ["pending", "retired"],
    deprovisioning: ["retired"],
    migrating: ["active", "retired"],
    retired: [],
  };

  test.each(INSTALL_STATES)(
    "what is not in the table is refused from %s with what is, forced or not, and changes nothing",
    async (from) => {
      const { id } = await api.register();
      await api.place(id, from);
      const before = await dumpTables(api.db);
      const reachable = REACHABLE[from] ?? [];
      for (const state of INSTALL_STATES.filter((each) => !reachable.includes(each))) {
        for (const force of [false, true]) {
          const answer = await api.call("PATCH", at(id, "/state"), { state, force });
          expect(answer).toMatchObject({
            status: 400,
            body: {
              detail: `Cannot transition from ${from} to ${state}. Valid transitions: ${reachable.join(", ") || "none"}`,
            },
          });
        }
      }
      expect(await dumpTables(api.db)).toEqual(before);
    },
  );

  test("answers with the node and the sentence of the contract, 404 for nobody, 422 for no state", async () => {
    const { id } = await api.register();
    const answer = await api.call<One<Node>>("PATCH", at(id, "/state"), { state: "pending" });
    expect(answer.body).toMatchObject({
      success: true,
      message: "Node transitioned to pending",
      data: { state: "pending" },
    });
    expect(await api.call("PATCH", at("nobody", "/state"), { state: "pending" })).toMatchObject({ status: 404 });
    expect(await api.call("PATCH", at(id, "/state"), { state: "asleep" })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "state"] }] },
    });
  });
});

describe("the specification's report table", () => {
  test("started in pending: installing, and install_attempts begins at 0", async () => {
    const node = await api.register();
    await api.move(node.id, "pending");
    const answer = await api.report(node.mac_address, "started");
    expect(answer).toMatchObject({
      success: true,
      message: "Installation started",
      data: { state: "installing", install_attempts: 0, installation_progress: 0 },
    });
  });

  test("progress in installing: kept and shown, no change of state, nothing in the history", async () => {
    const node = await installing();
    for (const installation_progress of [0, 40, 100])
      expect(await api.report(node.mac_address, "progress", { installation_progress })).toMatchObject({
        message: "Status reported successfully",
        data: { state: "installing", installation_progress },
      });
    expect((await api.history(node.id)).total).toBe(2);
  });

  test("complete in installing: installed, counter and error reset", async () => {
    const node = await installing();
    await api.report(node.mac_address, "failed", { installation_error: "no disk" });
    const answer = await api.report(node.mac_address, "complete");
    expect(answer).toMatchObject({
      message: "Installation completed",
      data: { state: "installed", install_attempts: 0, last_install_error: null, installation_progress: 100 },
    });
  });

  test("failed in installing: counted, twice it stays, the third time it is install_failed", async () => {
    const node = await installing();
    const fail = () => api.report(node.mac_address, "failed", { installation_error: "Disk not found" });
    for (const attempt of [1, 2]) {
      expect(await fail()).toMatchObject({
        message: `Installation failed (attempt ${attempt}), will retry`,
        data: { state: "installing", install_attempts: attempt, last_install_error: "Disk not found" },
      });
    }
    expect((await api.history(node.id)).total).toBe(2);
    expect(await fail()).toMatchObject({
      message: "Installation failed after 3 attempts",
      data: { state: "install_failed", install_attempts: 3, last_install_error: "Disk not found" },
    });
  });

  test("everything else is answered 200, changes no state, and is among the events", async () => {
    const fits: Readonly<Record<string, string>> = {
      started: "pending",
      progress: "installing",
      complete: "installing",
      failed: "installing",
    };
    for (const status of Object.keys(fits)) {
      for (const state of INSTALL_STATES.filter((each) => each !== fits[status])) {
        const node = await api.register();
        await api.place(node.id, state);
        const answer = await api.report(node.mac_address, status);
        expect(answer).toMatchObject({ message: "Status reported successfully", data: { state } });
        const events = await api.call("GET", at(node.id, "/events?event_type=report_ignored"));
        expect(events.body).toMatchObject({ total: 1, data: [{ message: `${status} was reported while ${state}` }] });
      }
    }
  });

  test("what a node tells of itself fills in what was not known; where it is believed, it replaces that, unless it is empty", async () => {
    const node = await api.register({ hostname: "old", vendor: "Acme" });
    const told = {
      ip_address: "10.0.0.9",
      hostname: "new",
      vendor: "",
      model: null,
      serial_number: "S",
      system_uuid: "U",
    };
    const { data: open } = await api.report(node.mac_address.toUpperCase().replaceAll(":", "-"), undefined, told);
    expect(open).toMatchObject({ ...told, hostname: "old", vendor: "Acme" });
    const believed = { mac_address: node.mac_address, ...told };
    await api.call("POST", "/api/v1/report", believed, { headers: { authorization: "Bearer kim" } });
    const data = await show(node.id);
    expect(data).toMatchObject({ ...told, vendor: "Acme", model: null, last_seen_at: expect.any(String) });
  });

  test("a MAC address that nothing has is 404", async () => {
    const body = { mac_address: "02:ff:ff:ff:ff:ff", installation_status: "started" };
    expect(await api.call("POST", "/api/v1/report", body, { as: null })).toMatchObject({ status: 404 });
  });

  test("an installer's whole log as the error is cut, and its failure counts", async () => {
    const node = await installing();
    const { data } = await api.report(node.mac_address, "failed", { installation_error: "x".repeat(100_000) });
    expect(String(data.last_install_error)).toMatch(/^x{4000,4096}… \(cut\)$/);
    expect(data.install_attempts).toBe(1);
  });

  test("a report that is sent again under its id, or its Idempotency-Key, counts once", async () => {
    const node = await installing();
    const failed = (more: object, headers = {}) =>
      api.call(
        "POST",
        "/api/v1/report",
        { mac_address: node.mac_address, installation_status: "failed", ...more },
        { headers },
      );
    await Promise.all([1, 2, 3].map(() => failed({ report_id: "boot-1" })));
    for (let times = 0; times < 2; times += 1) await failed({}, { "idempotency-key": "boot-2" });
    expect(await show(node.id)).toMatchObject({ install_attempts: 2, state: "installing" });
    const tooLong = await failed({}, { "idempotency-key": "k".repeat(129) });
    expect(tooLong).toMatchObject({ status: 422, body: { detail: [{ loc: ["header", "idempotency-key"] }] } });
  });

  test("POST /nodes/{id}/installation-status does the same for who knows the id", async () => {
    const node = await installing();
    const path = at(node.id, "/installation-status");
    const answer = await api.call("POST", path, { installation_status: "complete" }, { as: null });
    expect(answer).toMatchObject({
      status: 200,
      body: { message: "Installation completed", data: { state: "installed" } },
    });
    expect(await api.call("POST", at("nobody", "/installation-status"), {}, { as: null })).toMatchObject({
      status: 404,
    });
  });
});

describe("failure handling", () => {
  test("the history shows the failure as the specification's example does", async () => {
    const node = await failedThrice();
    const { data, total } = await api.history(node.id, "?limit=1");
    expect(total).toBe(3);
    expect(data).toEqual([
      {
        id: expect.any(String),
        from_state: "installing",
        to_state: "install_failed",
        triggered_by: "node_report",
        user_id: null,
        comment: null,
        metadata: { error: "Disk not found", attempt: 3 },
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      },
    ]);
  });

  test("a workflow that comes with the change of state is assigned with it, or not at all", async () => {
    const boot = { method: "chain", chain_url: "/files/a" };
    await api.ask("POST", "/api/v1/workflows", { id: "with-it", name: "with it", boot });
    const [node, used] = [await api.register(), await api.register()];
    await api.place(used.id, "active");
    const before = await dumpTables(api.db);
    const change = (id: string, body: object) => api.call("PATCH", at(id, "/state"), body);
    expect(await change(used.id, { state: "pending", workflow_id: "with-it" })).toMatchObject({ status: 400 });
    expect(await change(used.id, { state: "reprovision", workflow_id: "with-it" })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "workflow_id"] }] },
    });
    expect(await change(node.id, { state: "pending", workflow_id: "nowhere" })).toMatchObject({ status: 404 });
    expect(await dumpTables(api.db)).toEqual(before);
    expect(await api.move(node.id, "pending", { workflow_id: "with-it" })).toMatchObject({
      state: "pending",
      workflow_id: "with-it",
      effective_workflow_id: "with-it",
    });
  });

  test("another workflow by PATCH, then pending with force: the counters are reset and it installs again", async () => {
    const node = await failedThrice();
    await api.ask("POST", "/api/v1/workflows", {
      id: "other",
      name: "other",
      boot: { method: "chain", chain_url: "/files/a" },
    });
    await api.ask("PATCH", at(node.id), { workflow_id: "other" });
    const before = await dumpTables(api.db);
    const refused = await api.call("PATCH", at(node.id, "/state"), { state: "pending" });
    expect(refused).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/^Max install attempts \(3\) exceeded.*force/) },
    });
    expect(await dumpTables(api.db)).toEqual(before);
    expect(await api.move(node.id, "pending", { force: true, comment: "new disk" })).toMatchObject({
      state: "pending",
      workflow_id: "other",
      install_attempts: 0,
      last_install_error: null,
    });
    expect(await api.report(node.mac_address, "started")).toMatchObject({ data: { state: "installing" } });
    expect((await edges(node.id)).slice(-3)).toEqual([
      "installing → install_failed",
      "install_failed → pending",
      "pending → installing",
    ]);
  });

  test("force on any other transition resets the counters too", async () => {
    const node = await installing();
    await api.report(node.mac_address, "failed", { installation_error: "no disk" });
    expect(await api.move(node.id, "retired", { force: true })).toMatchObject({
      install_attempts: 0,
      last_install_error: null,
    });
  });
});

describe("the history", () => {
  test("pages without gaps or repeats, newest first also where the time is the same", async () => {
    const node = await api.register();
    for (let round = 0; round < 3; round += 1) {
      await api.place(node.id, "active");
      for (const state of ["reprovision", "pending"]) await api.move(node.id, state);
    }
    await api.db.execute("update journal set at = '2026-01-21T10:30:00Z' where kind = 'install' and id = $1", [
      node.id,
    ]);
    const whole = await api.history(node.id);
    expect(Object.keys(whole).sort()).toEqual(["data", "total"]);
    expect(whole.total).toBe(6);
    expect(whole.data.map(({ to_state }) => to_state)).toEqual(Array(3).fill(["pending", "reprovision"]).flat());
    expect(new Set(whole.data.map(({ id }) => id)).size).toBe(6);
    const pages = [];
    for (let offset = 0; offset < 6; offset += 2) pages.push(await api.history(node.id, `?limit=2&offset=${offset}`));
    expect(pages.flatMap(({ data }) => data)).toEqual(whole.data);
    expect(pages.map(({ total }) => total)).toEqual([6, 6, 6]);
    expect(await api.history(node.id, "?offset=6")).toEqual({ data: [], total: 6 });
    expect(await api.call("GET", at("nobody", "/history"))).toMatchObject({ status: 404 });
  });

  test("has fifty entries a page, unless another number is asked for", async () => {
    const node = await api.register();
    await api.place(node.id, "reprovision");
    for (let round = 0; round < 26; round += 1) {
      await api.move(node.id, "pending");
      await api.place(node.id, "active");
      await api.move(node.id, "reprovision");
    }
    const lengthOf = async (query: string) => (await api.history(node.id, query)).data.length;
    expect([await lengthOf(""), await lengthOf("?limit=51"), await lengthOf("?limit=200")]).toEqual([50, 51, 52]);
  });

  test("every transition is in the log as well, with structure", async () => {
    const node = await failedThrice();
    const lines = api.log.lines.filter(({ fields, message }) => fields.id === node.id && message === "moved");
    expect(lines.map(({ level, fields }) => ({ level, ...fields }))).toEqual([
      expect.objectContaining({ level: "info", kind: "install", from: "discovered", to: "pending", actor: "kim" }),
      expect.objectContaining({
        from: "pending",
        to: "installing",
        trigger: "started",
        actor: `node ${node.mac_address}`,
      }),
      expect.objectContaining({ from: "installing", to: "install_failed", owner: "agent", reason: "Disk not found" }),
    ]);
  });
});

describe("with the engine", () => {
  let engined: InstallsUnderTest;
  beforeAll(async () => {
    engined = await startInstalls({ engine: true, installTimeout: hours(1) });
  });
  afterAll(() => engined.close());
  const until = (id: string, state: string) =>
    eventually(async () => (await engined.ask("GET", at(id))).state === state, { what: `${id} is ${state}` });
  const chain = { method: "chain", chain_url: "/files/a" };

  test("a workflow whose next_state is active promotes what it installed, and says that nobody did", async () => {
    await engined.ask("POST", "/api/v1/workflows", {
      id: "to-active",
      name: "to active",
      boot: chain,
      next_state: "active",
    });
    const node = await engined.register();
    await engined.ask("PATCH", at(node.id), { workflow_id: "to-active" });
    await engined.move(node.id, "pending");
    await engined.report(node.mac_address, "started");
    await engined.report(node.mac_address, "complete");
    await until(node.id, "active");
    const { data } = await engined.history(node.id);
    expect(data.slice(0, 2)).toMatchObject([
      { from_state: "installed", to_state: "active", triggered_by: "system", user_id: null },
      { from_state: "installing", to_state: "installed", triggered_by: "node_report" },
    ]);
    await engined.log.line(({ fields, level }) => fields.id === node.id && fields.to === "active" && level === "info");
  });

  test("an attempt that takes too long is a failed one, three times, whether or not the machine boots again", async () => {
    const node = await engined.register();
    await engined.move(node.id, "pending");
    await engined.report(node.mac_address, "started");
    for (const attempt of [1, 2, 3]) {
      await engined.db.execute(
        `update installs set basis = basis + 1,
           facts = facts || jsonb_build_object('attemptStartedAt', to_jsonb(now() - interval '2 hours')) where id = $1`,
        [node.id],
      );
      await engined.db.execute("update work set wake_at = now() where kind = 'install' and id = $1", [node.id]);
      await engined.db.execute("notify millwright");
      await eventually(async () => (await engined.ask("GET", at(node.id))).install_attempts === attempt, {
        what: `attempt ${attempt} was counted`,
      });
    }
    await until(node.id, "install_failed");
    expect((await engined.history(node.id)).data[0]).toMatchObject({
      triggered_by: "system",
      metadata: { error: "not complete within 1h", attempt: 3 },
    });
  });
});

describe("the same by the RPC", () => {
  const tester = { name: "kim", roles: ["operator"], address: null } as const;
  const change = (id: string, wanted: Partial<WantedState>) =>
    changeNodeState(api.deps, tester, id, {
      ...{ state: "", from: "", comment: "", workflowId: "", force: false, replacementId: "" },
      ...wanted,
    });

  test("a node is approved with a workflow, once: whoever approves it again is told where it is", async () => {
    const { id } = await api.register();
    const { id: workflow } = await api.ask<{ id: string }>("POST", "/api/v1/workflows", WORKFLOW, { role: "admin" });
    const approval = { state: "pending", from: "discovered", workflowId: workflow, comment: "racked" };
    const approved = await change(id, approval);
    expect([approved.state.name, approved.effectiveWorkflowId]).toEqual(["pending", workflow]);
    await expect(change(id, approval)).rejects.toMatchObject({
      kind: "failed_precondition",
      message: `node ${id} is pending; this is for one that is discovered`,
    });
    expect((await api.history(id)).data[0]).toMatchObject({ to_state: "pending", user_id: "kim", comment: "racked" });
  });

  test("a node that has failed too often is tried again with force alone, and counts from 0", async () => {
    const { id } = await failedThrice();
    const again = { state: "pending", from: "install_failed" };
    await expect(change(id, again)).rejects.toThrow("reset the count with force");
    expect((await change(id, { ...again, force: true })).facts.installAttempts).toBe(0);
  });

  test.each<[string, Partial<WantedState>]>([
    ["state", { state: "mended" }],
    ["from", { state: "pending", from: "PENDING" }],
    ["workflow_id", { state: "active", workflowId: "w-1" }],
    ["comment", { state: "pending", comment: "\u202egnp.exe" }],
  ])("a wrong %s is named, and nothing changes", async (field, wanted) => {
    const { id } = await api.register();
    const before = await dumpTables(api.db);
    await expect(change(id, wanted)).rejects.toMatchObject({ kind: "invalid_argument", detail: { field } });
    expect(await dumpTables(api.db)).toEqual(before);
  });
});
