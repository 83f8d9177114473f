import { describe, expect, test } from "vitest";
import { createHttpAllocator } from "../../../src/providers/allocator/http-allocator.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { noteHeartbeats } from "../../../src/store/fleet/agents.ts";
import { type AllocatorServer, startAllocatorServer } from "../../support/fleet/allocator-server.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, startInstalls } from "../installs/installs-under-test.ts";

const PATH = "/api/v1/fleet/allocations";
let server: AllocatorServer;
let allocator: ReturnType<typeof createHttpAllocator>;
let api: InstallsUnderTest;
let count = 0;

beforeAll(async () => {
  server = await startAllocatorServer("secret");
  allocator = createHttpAllocator({ url: server.url, token: "secret", gateway: createBmcGateway() });
  api = await startInstalls({ engine: true, allocator });
  await api.db.execute(
    "insert into fleet_sites (name, url, created_by) values ('lab', 'http://192.0.2.1/MAAS', 'test')",
  );
});
afterAll(async () => {
  await api.close();
  allocator.close();
  await server.stop();
});

interface Allocation {
  readonly id: string;
  readonly node: string;
  readonly hostname: string;
  readonly state: string;
  readonly message: string;
}

/** A node as onboarding leaves it, in a state of the test's choice. */
async function aNode(state = "active") {
  const hostname = `gpu-${++count}`;
  const id = `fn-${hostname}`;
  await api.db.execute(
    `insert into fleet_nodes (id, site, profile, sku, hostname, ipmi_ip, mode, machine_id, request_id, fingerprint, created_by, state)
     values ($1, 'lab', 'h100', 'gpu8', $2, null, 'maas', $1, $1, '', 'test', $3)`,
    [id, hostname, state],
  );
  return { id, hostname };
}
const request = (node: string, more: object = {}) =>
  api.call<{ data: Allocation }>("POST", PATH, { node, tenant: "team-a", request_id: "one", ...more });
const requested = async (node: string, more: object = {}): Promise<Allocation> => {
  const answer = await request(node, more);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data;
};
const show = (id: string) => api.ask<Allocation>("GET", `${PATH}/${id}`);
const becomes = (id: string, state: string) =>
  expect.poll(async () => (await show(id)).state, { timeout: 30_000, interval: 20 }).toBe(state);
const release = (id: string, how = "release") => api.call("POST", `${PATH}/${id}/${how}`, undefined, { role: "admin" });

describe("an allocation", () => {
  test("is prepared by the allocator, used, cleaned up by the allocator, and released", async () => {
    const { id: node, hostname } = await aNode();
    const { id } = await requested(hostname);
    await becomes(id, "active");
    expect(await show(id)).toMatchObject({ node, hostname, message: "" });
    expect((await release(id)).status).toBe(200);
    await becomes(id, "released");
    expect((await server.wishes()).filter((wish) => wish.id === id)).toEqual([
      { id, wanted: "provisioned", force: false },
      { id, wanted: "released", force: false },
    ]);
    const history = await api.db.query<{ row: string }>(
      "select owner || ' ' || from_state || ' ' || to_state as row from journal where id = $1 and type <> 'created' order by version",
      [id],
    );
    expect(history.map(({ row }) => row)).toEqual([
      "handler requested provisioning",
      "handler provisioning active",
      "caller active releasing",
      "handler releasing released",
    ]);
  });

  test("asked for twice is one; for another tenant it is refused", async () => {
    const { hostname } = await aNode();
    const [first, again] = await Promise.all([requested(hostname), requested(hostname)]);
    expect(again.id).toBe(first.id);
    expect((await request(hostname, { tenant: "team-b" })).status).toBe(409);
    expect((await requested(hostname, { request_id: "two" })).id).not.toBe(first.id);
  });

  test.each(["enrolling", "offline", "quarantined", "draining", "retired", "removing"])(
    "of a node that is %s is refused, and nothing is made",
    async (state) => {
      const { id: node, hostname } = await aNode(state);
      const answer = await request(hostname);
      expect(answer.status).toBe(400);
      expect(answer.text).toContain(`is ${state}: only an active one is allocated`);
      expect(await api.db.query("select 1 from fleet_allocations where node = $1", [node])).toEqual([]);
    },
  );

  test("of an active node whose agent reports that it is unhealthy is refused with its reason, until it reports that it is well", async () => {
    const { id: node, hostname } = await aNode();
    const reports = (health: "healthy" | "unhealthy", message: string) =>
      noteHeartbeats(api.db, [{ nodeId: node, health, message }]);
    await reports("unhealthy", "GPU 3 has fallen off the bus");
    const answer = await request(hostname);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("its agent reports that it is unhealthy: GPU 3 has fallen off the bus");
    expect(await api.db.query("select 1 from fleet_allocations where node = $1", [node])).toEqual([]);
    await reports("healthy", "");
    await becomes((await requested(hostname)).id, "active");
  });

  test("that the allocator refuses has failed for good, and says what the allocator said", async () => {
    const { hostname } = await aNode();
    await server.refusesNext();
    const { id } = await requested(hostname);
    await becomes(id, "failed");
    expect((await show(id)).message).toContain("the tenant is not known");
    expect((await release(id, "force-release")).status).toBe(400);
  });

  test("that could not be released keeps its node, is found by its state, and is released when asked for again", async () => {
    const { hostname } = await aNode();
    const { id } = await requested(hostname);
    await becomes(id, "active");
    await server.refusesNext();
    await release(id);
    await becomes(id, "release_failed");
    const list = await api.call<{ data: Allocation[] }>("GET", `${PATH}?status=release_failed&node=${hostname}`);
    expect(list.body.data.map((each) => each.id)).toEqual([id]);
    expect((await release(id, "force-release")).status).toBe(200);
    await becomes(id, "released");
    expect((await server.wishes()).at(-1)).toEqual({ id, wanted: "released", force: true });
    // Asked for once more, it is released as it was.
    expect((await release(id)).status).toBe(200);
  });

  test("that nobody knows, and a node that nobody knows, are not found", async () => {
    expect((await api.call("GET", `${PATH}/fa-0`)).status).toBe(404);
    expect((await release("fa-0")).status).toBe(404);
    expect((await request("gpu-nobody")).status).toBe(404);
    expect((await api.call("GET", `${PATH}?node=gpu-nobody`)).status).toBe(404);
  });
});
