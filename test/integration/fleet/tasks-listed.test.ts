import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import { type FleetServer, startFleetServer } from "../../support/fleet/fleet-server.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let it: FleetServer;
beforeAll(async () => {
  it = await startFleetServer({ MILLWRIGHT_AUTH_MODE: "off" });
});
afterAll(() => it.close());

const nodes = () => createClient(FleetNodeService, createGrpcTransport({ baseUrl: `http://${it.server.grpcAddress}` }));
const ALL = { node: "", filter: "", orderBy: "", pageSize: 0, pageToken: "", withTotal: true };

test("tasks are listed of one node or of all, the newest first, filtered, sorted, counted and page by page", async () => {
  const [one, other] = [await it.makeNode(), await it.makeNode()];
  const bearer = await it.enrol(one);
  const first = await it.makeTask(one);
  const path = (rest: string) => `${one}/tasks/${rest}`;
  expect((await it.call("GET", path("wait?wait_seconds=0"), { bearer })).status).toBe(200);
  const result = { outcome: "failed", message: "two pods stay", result: {} };
  expect((await it.call("POST", path(`${first}/result`), { bearer, body: result })).status).toBe(200);
  const second = await it.makeTask(one, { type: "node.scrub_gpu" });
  const third = await it.makeTask(other);

  const all = await nodes().listNodeTasks(ALL);
  expect(all.tasks.map(({ id }) => id)).toEqual([third, second, first]);
  expect(all.totalSize).toBe(3);
  expect(all.tasks[2]).toMatchObject({
    ...{ nodeId: one, hostname: one, taskType: "node.drain", state: "failed", message: "two pods stay", runId: "" },
    ...{ dispatchedAt: expect.anything(), finishedAt: expect.anything(), expiresAt: expect.anything() },
  });
  const ofOne = await nodes().listNodeTasks({ ...ALL, node: one, orderBy: "task_type" });
  expect(ofOne.tasks.map(({ id }) => id)).toEqual([first, second]);
  const stuck = await nodes().listNodeTasks({ ...ALL, filter: "state=queued AND task_type=node.drain" });
  expect(stuck.tasks.map(({ id }) => id)).toEqual([third]);

  const page = await nodes().listNodeTasks({ ...ALL, node: one, pageSize: 1 });
  const rest = await nodes().listNodeTasks({ ...ALL, node: one, pageToken: page.nextPageToken });
  expect([page, rest].map(({ tasks }) => tasks.map(({ id }) => id))).toEqual([[second], [first]]);
  // A page belongs to the node that it was asked of.
  const elsewhere = nodes().listNodeTasks({ ...ALL, node: other, pageToken: page.nextPageToken });
  await expect(elsewhere).rejects.toMatchObject({ code: Code.InvalidArgument });
  await expect(nodes().listNodeTasks({ ...ALL, node: "gpu-404" })).rejects.toMatchObject({ code: Code.NotFound });

  const overRest = async (query: string) => {
    const response = await fetch(`${it.server.httpUrl}/api/v1/fleet/tasks?${query}`);
    return { status: response.status, body: (await response.json()) as { data: { id: string; state: string }[] } };
  };
  expect((await overRest(`node=${one}&filter=state%3Dfailed`)).body.data).toMatchObject([
    { id: first, state: "failed" },
  ]);
  expect((await overRest("node=gpu-404")).status).toBe(404);
  expect((await overRest("filter=stage%3Dx")).status).toBe(422);
});

test("the detail view says who answers for a node, and what was heard of it last", async () => {
  const node = await it.makeNode();
  const agentOf = async () => (await nodes().getFleetNode({ node })).node?.agent;
  expect(await agentOf()).toBeUndefined();
  const bearer = await it.enrol(node);
  expect(await agentOf()).toMatchObject({ enrolledAt: expect.anything(), health: "", message: "" });
  expect((await agentOf())?.seenAt).toBeUndefined();
  const body = { health: "unhealthy", message: "fan 3 stands still", agent_version: "1.2.3" };
  expect((await it.call("POST", `${node}/heartbeat`, { bearer, body })).status).toBe(200);
  const agent = { health: "unhealthy", message: "fan 3 stands still", version: "1.2.3", seenAt: expect.anything() };
  expect(await agentOf()).toMatchObject(agent);
  const response = await fetch(`${it.server.httpUrl}/api/v1/fleet/nodes/${node}`);
  const { data } = (await response.json()) as { data: { agent: object } };
  expect(data.agent).toMatchObject({ health: "unhealthy", version: "1.2.3", message: "fan 3 stands still" });
});
