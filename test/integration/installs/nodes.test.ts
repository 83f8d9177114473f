import { describe, expect, test } from "vitest";
import { hours } from "../../../src/kernel/time/duration.ts";
import { registerMachine, type SpecInput } from "../../../src/services/machine/machines.ts";
import { retireMachine } from "../../../src/services/machine/phase-changes.ts";
import { acquire } from "../../../src/store/lifecycle/claims/claims.ts";
import { removeOldEntries } from "../../../src/store/lifecycle/journal-retention.ts";
import { wishFor } from "../../support/claims.ts";
import { sealJournal, testSealKey } from "../../support/journal/sealed-journal.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  type InstallsUnderTest,
  type Many,
  type Node,
  type One,
  type Page,
  startInstalls,
} from "./installs-under-test.ts";

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls();
});
afterAll(() => api.close());

const kim = { name: "kim", roles: ["admin"], address: null };
const at = (id: string, more = "") => `/api/v1/nodes/${id}${more}`;
const spec = (mac: string): SpecInput => ({
  provider: "",
  serial: `serial of ${mac}`,
  macAddresses: [mac],
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
});

describe("POST /nodes", () => {
  test("puts a node on record as discovered, with every field of the contract", async () => {
    const answer = await api.call<One<Node>>("POST", "/api/v1/nodes", {
      mac_address: "0A-00-5E-10-00-01",
      hostname: "rack1-01",
      arch: "arm64",
      boot_mode: "uefi",
      vendor: "Acme",
      model: "A1",
      serial_number: "S-1",
      system_uuid: "b0b5",
    });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      success: true,
      message: "Node registered successfully",
      data: {
        id: "m-0a005e100001",
        mac_address: "0a:00:5e:10:00:01",
        hostname: "rack1-01",
        ip_address: null,
        state: "discovered",
        workflow_id: null,
        effective_workflow_id: null,
        vendor: "Acme",
        model: "A1",
        serial_number: "S-1",
        system_uuid: "b0b5",
        arch: "arm64",
        boot_mode: "uefi",
        group_id: null,
        tags: [],
        install_attempts: 0,
        last_install_error: null,
        installation_progress: null,
        state_changed_at: expect.any(String),
        created_at: expect.any(String),
        updated_at: expect.any(String),
        last_seen_at: null,
        erased_disks: [],
        installation_steps: [],
      },
    });
    expect((await api.call("GET", at("m-0a005e100001"))).body).toEqual({ ...answer.body, message: null });
  });

  test("takes x86_64 and bios for granted, and registers a machine that is FACTORY_READY", async () => {
    const node = await api.register();
    expect(node).toMatchObject({ arch: "x86_64", boot_mode: "bios" });
    expect(await api.db.query("select state from machines where id = $1", [node.id])).toEqual([
      { state: "FACTORY_READY" },
    ]);
  });

  test("attaches to the machine that has the MAC address, once", async () => {
    await registerMachine(api.deps, kim, { id: "known-1", labels: {}, spec: spec("0a:00:5e:10:00:02") });
    const body = { mac_address: "0a:00:5e:10:00:02" };
    const answer = await api.call<One<Node>>("POST", "/api/v1/nodes", body);
    expect(answer).toMatchObject({ status: 201, body: { data: { id: "known-1" } } });
    const again = await api.call("POST", "/api/v1/nodes", body);
    expect(again).toMatchObject({ status: 409, body: { detail: expect.stringContaining("known-1") } });
    expect(await api.db.query("select id from machines where id like 'm-0a005e100002%'")).toEqual([]);
  });

  test("by several at the same moment makes one node, and says so to the others", { tags: "race" }, async () => {
    const body = { mac_address: "0a:00:5e:10:00:03" };
    const answers = await Promise.all([1, 2, 3, 4].map(() => api.call("POST", "/api/v1/nodes", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test("with the address of a machine that was retired makes a new machine", async () => {
    const body = { mac_address: "0a:00:5e:10:00:04" };
    const first = await api.ask("POST", "/api/v1/nodes", body);
    await api.ask("DELETE", at(first.id));
    await retireMachine(api.deps, kim, { machineId: first.id, comment: "" });
    const second = await api.ask("POST", "/api/v1/nodes", body);
    expect(second.id).toMatch(/^m-0a005e100004-.+/);
    expect(second.state).toBe("discovered");
    expect(await api.ask("GET", at(first.id))).toMatchObject({ state: "retired" });
  });

  test("with a group that does not exist is refused, and nothing is registered", async () => {
    const body = { mac_address: "0a:00:5e:10:00:05", group_id: "nowhere" };
    expect(await api.call("POST", "/api/v1/nodes", body)).toMatchObject({ status: 404 });
    expect(await api.db.query("select from machine_identities where value = '0a:00:5e:10:00:05'")).toEqual([]);
  });
});

describe("GET /nodes", () => {
  test("filters by state, group and tag, pages, and counts them all", async () => {
    const group = await api.ask<{ id: string }>("POST", "/api/v1/groups", { name: "listed" });
    const nodes: Node[] = [];
    for (let count = 0; count < 3; count += 1) nodes.push(await api.register({ group_id: group.id }));
    const [first, second] = nodes as [Node, Node];
    await api.move(second.id, "pending");
    await api.ask("POST", at(first.id, "/tags"), { tag: "GPU" });
    const list = async (query: string) => (await api.call<Many<Node>>("GET", `/api/v1/nodes?${query}`)).body;
    const ids = async (query: string) => (await list(query)).data.map(({ id }) => id);
    expect(await list(`group_id=${group.id}&limit=2`)).toMatchObject({ success: true, total: 3 });
    expect(await ids(`group_id=${group.id}`)).toEqual(nodes.map(({ id }) => id));
    expect(await ids(`group_id=${group.id}&limit=1&offset=1`)).toEqual([second.id]);
    expect(await ids(`group_id=${group.id}&state=pending`)).toEqual([second.id]);
    expect(await ids("tag=gPu")).toEqual([first.id]);
    expect(await list("state=migrating")).toEqual({ success: true, data: [], total: 0 });
  });

  test("without a limit has a thousand, and the true total", async () => {
    const many = "select 'many-' || n as id from generate_series(1, 1001) n";
    await api.db.execute(
      `insert into machines (id, provider, state) select id, 'datacenter', 'FACTORY_READY' from (${many})`,
    );
    await api.db.execute(
      `insert into installs (id, mac, state) select id, '02:00:00:00:00:99', 'discovered' from (${many})`,
    );
    const [counted] = await api.db.query<{ total: number }>("select count(*)::int as total from installs");
    const { data, total } = (await api.call<Many<Node>>("GET", "/api/v1/nodes")).body;
    expect([data.length, total]).toEqual([1_000, counted?.total]);
    for (const table of ["installs", "machines"]) await api.db.execute(`delete from ${table} where id like 'many-%'`);
  });

  test("lists only machines that have an install", async () => {
    await registerMachine(api.deps, kim, { id: "never-booted", labels: {}, spec: spec("0a:00:5e:10:00:06") });
    const { data } = (await api.call<Many<Node>>("GET", "/api/v1/nodes")).body;
    expect(data.map(({ id }) => id)).not.toContain("never-booted");
    expect(await api.call("GET", at("never-booted"))).toMatchObject({
      status: 404,
      body: { detail: "Node not found" },
    });
  });

  test.each(["m-unknown", "50% 你\r\nset-cookie: x"])(
    "%j is unknown, and the answer names the command that helps",
    async (id) => {
      const { status, headers } = await api.call("GET", at(encodeURIComponent(id)));
      expect(status).toBe(404);
      const next = decodeURIComponent(headers.get("millwright-next") ?? "");
      expect(next).toBe(`millwright node list (nothing is known of ${id})`);
      expect(headers.get("set-cookie")).toBeNull();
    },
  );
});

describe("PATCH /nodes/{id}", () => {
  test("changes what is sent, keeps what is not, and clears what is null", async () => {
    const { id } = await api.register({ hostname: "old", vendor: "Acme" });
    await api.ask("POST", "/api/v1/workflows", {
      id: "patched",
      name: "patched",
      boot: { method: "chain", chain_url: "/files/a" },
    });
    const changed = await api.call<One<Node>>("PATCH", at(id), { hostname: "new", workflow_id: "patched" });
    expect(changed.body).toMatchObject({
      success: true,
      data: { hostname: "new", vendor: "Acme", workflow_id: "patched" },
    });
    expect(await api.ask("PATCH", at(id), {})).toEqual(changed.body.data);
    expect(await api.ask("PATCH", at(id), { hostname: null, workflow_id: null })).toMatchObject({
      hostname: null,
      vendor: "Acme",
      workflow_id: null,
    });
  });

  test("takes every field of the contract, and clears each", async () => {
    const { id } = await api.register();
    const group = await api.ask<{ id: string }>("POST", "/api/v1/groups", { name: "patched into" });
    const boot = { method: "chain", chain_url: "/files/a" };
    await api.ask("POST", "/api/v1/workflows", { id: "every-field", name: "every field", boot });
    const fields = {
      hostname: "n1",
      workflow_id: "every-field",
      group_id: group.id,
      vendor: "Acme",
      model: "A1",
      serial_number: "S-1",
      system_uuid: "u-1",
    };
    expect(await api.ask("PATCH", at(id), fields)).toMatchObject(fields);
    const cleared = Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
    expect(await api.ask("PATCH", at(id), cleared)).toMatchObject(cleared);
  });

  test.each([[{ group_id: "nowhere" }], [{ group_id: "" }], [{ workflow_id: "nothing" }], [{ workflow_id: "" }]])(
    "with %j is 404 and changes nothing",
    async (patch) => {
      const { id } = await api.register();
      const before = await api.ask("GET", at(id));
      expect(await api.call("PATCH", at(id), { hostname: "half", ...patch })).toMatchObject({ status: 404 });
      expect(await api.ask("GET", at(id))).toEqual(before);
    },
  );

  test("of a node that does not exist is 404", async () => {
    expect(await api.call("PATCH", at("nobody"), { hostname: "x" })).toMatchObject({
      status: 404,
      body: { detail: "Node not found" },
    });
  });
});

describe("DELETE /nodes/{id}", () => {
  test("retires a node and keeps its record; a second time is 400", async () => {
    const { id } = await api.register();
    const answer = await api.call<One<Node>>("DELETE", at(id));
    expect(answer).toMatchObject({ status: 200, body: { message: "Node retired", data: { id, state: "retired" } } });
    expect(await api.call("DELETE", at(id))).toMatchObject({ status: 400 });
    expect(await api.ask("GET", at(id))).toMatchObject({ state: "retired" });
    expect(await api.call("DELETE", at("nobody"))).toMatchObject({ status: 404 });
  });

  test("is refused while a run holds the machine, and names the run", async () => {
    const { id } = await api.register();
    const wish = wishFor({ kind: "machine", id }, { kind: "run", id: "run-77" }, "RUNNING");
    await api.db.transaction((tx) => acquire(tx, [wish]));
    for (const [method, path, body] of [
      ["DELETE", at(id), undefined],
      ["PATCH", at(id, "/state"), { state: "retired" }],
    ] as const) {
      const answer = await api.call(method, path, body);
      expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining("run run-77") } });
    }
    expect(await api.ask("GET", at(id))).toMatchObject({ state: "discovered" });
  });

  test("comes before the machine can be retired", async () => {
    const { id } = await api.register();
    const retire = () => retireMachine(api.deps, kim, { machineId: id, comment: "" });
    await expect(retire()).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining("discovered"),
      detail: { next: `millwright node retire ${id}` },
    });
    await api.ask("DELETE", at(id));
    await retire();
    expect(await api.db.query("select state from machines where id = $1", [id])).toEqual([{ state: "RETIRED" }]);
  });
});

describe("tags", () => {
  test("are kept in lower case, once, and go again", async () => {
    const { id } = await api.register();
    expect(await api.ask("POST", at(id, "/tags"), { tag: "Rack_7-B" })).toMatchObject({ tags: ["rack_7-b"] });
    expect(await api.call("POST", at(id, "/tags"), { tag: "RACK_7-b" })).toMatchObject({ status: 409 });
    expect(await api.ask("POST", at(id, "/tags"), { tag: "gpu" })).toMatchObject({ tags: ["gpu", "rack_7-b"] });
    expect(await api.ask("DELETE", at(id, "/tags/Rack_7-B"))).toMatchObject({ tags: ["gpu"] });
    for (const gone of ["rack_7-b", "no%20tag"])
      expect(await api.call("DELETE", at(id, `/tags/${gone}`))).toMatchObject({ status: 404 });
    expect(await api.call("POST", at("nobody", "/tags"), { tag: "gpu" })).toMatchObject({ status: 404 });
  });

  test("are at most a hundred, and more are refused", async () => {
    const { id } = await api.register();
    await api.db.execute(
      "update installs set tags = array(select 't' || n from generate_series(1, 100) n) where id = $1",
      [id],
    );
    expect(await api.call("POST", at(id, "/tags"), { tag: "more" })).toMatchObject({ status: 400 });
  });
});

test("stats count nodes by every state, and those of the last hour", async () => {
  const { id } = await api.register();
  await api.place(id, "installing");
  const [counted] = await api.db.query<{ total: number; recent: number }>(
    "select count(*) as total, count(*) filter (where created_at > now() - interval '1 hour') as recent from installs",
  );
  await api.db.execute("update installs set created_at = now() - interval '2 hours' where id = $1", [id]);
  const { data } = (await api.call<One<Record<string, unknown>>>("GET", "/api/v1/nodes/stats")).body;
  expect(data).toMatchObject({
    total: counted?.total,
    discovered_last_hour: (counted?.recent ?? 0) - 1,
    installing_count: 1,
    by_state: { installing: 1, migrating: 0, install_failed: 0 },
  });
});

test("stalled are those that install for longer than an attempt may take, the longest first, in pages", async () => {
  const ids: string[] = [];
  for (const age of ["30 minutes", "2 hours", "3 hours"]) {
    const { id } = await api.register();
    await api.place(id, "installing");
    await api.db.execute("update installs set state_since = now() - $2::interval where id = $1", [id, age]);
    ids.push(id);
  }
  const list = async (query = "") => (await api.call<Many<Node>>("GET", `/api/v1/nodes/stalled${query}`)).body;
  expect(await list()).toMatchObject({ success: true, total: 2 });
  expect((await list()).data.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
  expect((await list("?limit=1&offset=1")).data.map(({ id }) => id)).toEqual([ids[1]]);
});

test("events tell everything that happened, newest first, by type and in pages", async () => {
  const node = await api.register();
  await api.report(node.mac_address, "complete", { hostname: "n1" });
  await api.ask("POST", at(node.id, "/tags"), { tag: "gpu" });
  interface Event {
    readonly event_type: string;
    readonly message: string | null;
  }
  const events = async (query = "") => (await api.call<Page<Event>>("GET", at(node.id, `/events${query}`))).body;
  const all = await events();
  expect(Object.keys(all).sort()).toEqual(["data", "total"]);
  expect(all.data.map(({ event_type }) => event_type)).toEqual([
    "tags_changed",
    "report_ignored",
    "facts_changed",
    "created",
  ]);
  expect(all.total).toBe(4);
  expect(await events("?event_type=report_ignored")).toMatchObject({
    total: 1,
    data: [{ event_type: "report_ignored", message: "complete was reported while discovered" }],
  });
  expect((await events("?limit=1&offset=3")).data).toMatchObject([{ event_type: "created" }]);
  expect(await api.call("GET", at("nobody", "/events"))).toMatchObject({ status: 404 });
});

test("an entry of a history keeps its id, whatever is added after it and removed before it", async () => {
  const { id } = await api.register();
  await api.move(id, "pending");
  await api.move(id, "installing", { force: true });
  const idsOf = async () => (await api.history(id)).data.map((entry) => entry.id);
  const before = await idsOf();
  expect(new Set(before).size).toBe(2);
  await api.place(id, "install_failed");
  await api.move(id, "pending", { force: true });
  expect((await idsOf()).slice(1)).toEqual(before);
  const { db } = api.deps;
  // All of them: retention goes by the order of entries, and stops at the first that is young.
  await db.execute("update journal set at = at - interval '400 days'");
  await sealJournal(db);
  await removeOldEntries(db, { retention: hours(365 * 24), most: 5_000, sealKey: testSealKey });
  const [last, ...others] = await idsOf();
  expect(others).toEqual([]);
  expect(before).not.toContain(last);
});

describe("POST /nodes/bulk/change-state", () => {
  test("takes each node by itself, says which could not go, and leaves out ids that nothing has", async () => {
    const [good, bad] = [await api.register(), await api.register()];
    await api.move(bad.id, "pending");
    const body = { node_ids: [good.id, bad.id, good.id, "nobody"], new_state: "pending", comment: "racked" };
    const answer = await api.call<One<unknown>>("POST", "/api/v1/nodes/bulk/change-state", body);
    expect(answer.body.data).toEqual({
      updated: 1,
      failed: 1,
      errors: [{ node_id: bad.id, error: expect.stringMatching(/^Cannot transition from pending to pending\./) }],
    });
    expect((await api.history(good.id)).data).toMatchObject([
      { to_state: "pending", comment: "racked", user_id: "kim" },
    ]);
  });

  test("has no force", async () => {
    const node = await api.register();
    const body = { node_ids: [node.id], new_state: "pending", force: true };
    expect(await api.call("POST", "/api/v1/nodes/bulk/change-state", body)).toMatchObject({ status: 422 });
  });
});
