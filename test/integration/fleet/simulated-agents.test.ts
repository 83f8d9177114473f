import { describe, expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { cloudConfigOf } from "../../../src/lifecycles/fleet-node/agent-bootstrap.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { placeOfUrl } from "../../../src/services/fleet/site-target.ts";
import { findAgent, findHeartbeats } from "../../../src/store/fleet/agents.ts";
import { eventually } from "../../support/eventually.ts";
import { type FleetServer, startFleetServer } from "../../support/fleet/fleet-server.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { startMaasSite } from "./maas-site.ts";

const HOSTS = 10;
const [READY, DEPLOYED] = [4, 6];

let it: FleetServer;
let site: Awaited<ReturnType<typeof startMaasSite>>;
const maas = createMaas({ gateway: createBmcGateway() });
let target: MaasTarget;
let used = 0;

beforeAll(async () => {
  it = await startFleetServer({ MILLWRIGHT_FLEET_TASK_LEASE: "2s" });
  site = await startMaasSite({ hosts: HOSTS });
  const { url: _, ...place } = placeOfUrl(site.url);
  target = { ...place, apiKey: site.apiKey };
});
afterAll(async () => {
  await site.stop();
  maas.close();
  await it.close();
});

const reached = (systemId: string, status: number) =>
  eventually(async () => (await maas.findMachine(target, systemId, aCall()))?.status === status, {
    what: `MAAS has the machine in status ${status}`,
  });

/** A server that MAAS installs with the user data of a node; nothing is waited for after that. */
async function deployed(faults: readonly { readonly type: string; readonly times?: number }[] = []) {
  const host = site.hosts[used++];
  if (!host) throw new Error("there are no servers left");
  for (const { times, ...fault } of faults)
    await site.control("POST", "/faults", { device: host.id, fault, ...(times !== undefined && { times }) });
  const node = await it.makeNode();
  const power = { address: host.ipmi_address, username: host.ipmi_username, password: host.ipmi_password };
  const { systemId } = await maas.createMachine(target, { hostname: host.id, power }, aCall());
  await maas.commission(target, systemId, aCall());
  await reached(systemId, READY);
  await maas.linkSubnet(target, { systemId, interfaceId: 1, subnetId: 1, ipAddress: null }, aCall());
  const userData = cloudConfigOf({ server: it.server.httpUrl, nodeId: node, token: await it.issue(node) });
  const order = { userData, distroSeries: null, hardwareSync: false, comment: "" };
  await maas.deploy(target, systemId, order, aCall());
  await reached(systemId, DEPLOYED);
  return { node, systemId, host: host.id };
}
const healthOf = async (node: string) => (await findHeartbeats(it.db, [node])).get(node)?.health;
const isWell = (node: string) =>
  eventually(async () => (await healthOf(node)) === "healthy", { what: "the agent says that the node is well" });
const ended = (task: string, state: string) =>
  eventually(async () => (await it.taskOf(task)).state.name === state, {
    what: `the task is ${state}`,
    seen: async () => JSON.stringify(await it.taskOf(task)),
  });

describe("a deployed simulated server", () => {
  test("enrols by its user data, says that it is well, and does what it is asked, until it is uninstalled", async () => {
    const { node } = await deployed();
    await isWell(node);
    for (const type of ["node.drain", "node.cleanup_storage", "node.scrub_gpu", "node.validate_clean"])
      await ended(await it.makeTask(node, { type }), "completed");
    await ended(await it.makeTask(node, { type: "diag.health_probe" }), "completed");
    await ended(await it.makeTask(node, { type: "node.uninstall" }), "completed");
    const late = await it.makeTask(node, { ttl: 1_000 });
    await ended(late, "expired");
  });

  test("that another system is installed on is no agent any more", async () => {
    const { node, systemId } = await deployed();
    await isWell(node);
    await maas.release(target, systemId, { erase: false, comment: "" }, aCall());
    await reached(systemId, READY);
    await ended(await it.makeTask(node, { ttl: 1_500 }), "expired");
  });

  test("that never enrols is never heard of", async () => {
    const { node } = await deployed([{ type: "agent_never_enrols" }]);
    const other = await deployed();
    await isWell(other.node);
    expect(await findAgent(it.db, node)).toBeUndefined();
  });

  test("says that it is unhealthy, and later that it is well again", async () => {
    const { node } = await deployed([{ type: "agent_unhealthy", times: 1 }]);
    await eventually(async () => (await healthOf(node)) === "unhealthy", { what: "the agent says so" });
    // What it waits for is over with the first task.
    await ended(await it.makeTask(node), "completed");
    await isWell(node);
  });

  test("fails a task, and does the next one", async () => {
    const { node } = await deployed([{ type: "agent_fails_task", times: 1 }]);
    const first = await it.makeTask(node);
    await ended(first, "failed");
    expect((await it.taskOf(first)).facts.message).toContain("node.drain");
    await ended(await it.makeTask(node), "completed");
  });

  test("dies in a task, whose lease ends, and is there again for the next one", async () => {
    const { node } = await deployed([{ type: "agent_dies_in_task", times: 1 }]);
    await ended(await it.makeTask(node), "expired");
    await ended(await it.makeTask(node), "completed");
  });

  test("answers twice, and counts once", async () => {
    const { node } = await deployed([{ type: "agent_answers_twice" }]);
    const [first, second] = [await it.makeTask(node), await it.makeTask(node)];
    for (const task of [first, second]) await ended(task, "completed");
    const [told] = await it.db.query<{ count: string }>(
      "select count(*) from journal where kind = 'fleet_task' and id = $1 and to_state = 'completed'",
      [first],
    );
    expect(Number(told?.count)).toBe(1);
  });

  test("falls silent, and is heard again once it may", async () => {
    const { node, host } = await deployed();
    await isWell(node);
    const { id } = await site.control<{ id: string }>("POST", "/faults", {
      device: host,
      fault: { type: "agent_silent" },
    });
    const task = await it.makeTask(node);
    await site.control("DELETE", `/faults/${id}`);
    await ended(task, "completed");
  });
});
