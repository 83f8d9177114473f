import { createPublicKey, verify } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hours, seconds } from "../../../src/kernel/time/duration.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import { dismissAgent, findHeartbeats } from "../../../src/store/fleet/agents.ts";
import { forgetTasks } from "../../../src/store/fleet/tasks.ts";
import { eventually } from "../../support/eventually.ts";
import { type FleetServer, startFleetServer } from "../../support/fleet/fleet-server.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let it: FleetServer;
beforeAll(async () => {
  it = await startFleetServer({ MILLWRIGHT_FLEET_TASK_LEASE: "2s", MILLWRIGHT_AUTH_TOKEN_CACHE: "60s" });
});
afterAll(() => it.close());

interface Task {
  readonly task_id: string;
  readonly task_type: string;
  readonly expires_at: string;
  readonly signed: string;
  readonly signature: string;
}
const NONCE = "0123456789abcdef";
const OTHER_NONCE = "fedcba9876543210";
const enrol = (node: string, token: string, nonce = NONCE, url = it.server.httpUrl) =>
  it.call<{ bearer: string; public_key: string; detail: string }>("POST", `${node}/enroll`, {
    body: { token, nonce },
    url,
  });
const wait = (node: string, bearer: string, query = "wait_seconds=0", url = it.server.httpUrl) =>
  it.call<{ task: Task | null }>("GET", `${node}/tasks/wait?${query}`, { bearer, url });
const answer = (node: string, bearer: string, task: string, body: object) =>
  it.call<{ detail: string }>("POST", `${node}/tasks/${task}/result`, { bearer, body });
const drained = { outcome: "completed", result: { drained: true } };
/** A node whose agent has enrolled. */
async function enrolled() {
  const node = await it.makeNode();
  return { node, bearer: await it.enrol(node) };
}

describe("enrolment", () => {
  test("takes a token once, and answers with a bearer and the key that signs tasks", async () => {
    const node = await it.makeNode();
    const token = await it.issue(node);
    const { status, body } = await enrol(node, token);
    expect(status).toBe(200);
    expect(createPublicKey(body.public_key).asymmetricKeyType).toBe("ed25519");
    expect((await it.nodeOf(node)).facts.enrollment).toMatchObject({ issue: 1, consumedAt: expect.any(String) });
    expect((await wait(node, body.bearer)).body).toEqual({ task: null });
    const replayed = await enrol(node, token, OTHER_NONCE);
    expect([replayed.status, replayed.body.bearer]).toEqual([401, undefined]);
  });

  test("whose answer was lost is answered again, until the bearer was used", async () => {
    const node = await it.makeNode();
    const token = await it.issue(node);
    const first = await enrol(node, token);
    expect((await enrol(node, token)).body.bearer).toBe(first.body.bearer);
    await wait(node, first.body.bearer);
    expect((await enrol(node, token)).status).toBe(401);
  });

  test("of two at once with one token is one alone", { tags: "race" }, async () => {
    const node = await it.makeNode();
    const token = await it.issue(node);
    const both = await Promise.all([enrol(node, token, NONCE), enrol(node, token, OTHER_NONCE)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 401]);
  });

  test("refuses alike whatever is wrong, and changes nothing", async () => {
    const [node, other, gone] = [await it.makeNode(), await it.makeNode(), await it.makeNode("deleted")];
    const [good, ofOther] = [await it.issue(node), await it.issue(other)];
    const late = await it.makeNode();
    const expired = await it.issue(late, seconds(-1));
    const cases = [
      await enrol(node, ofOther),
      await enrol(node, `${good}x`),
      await enrol(late, expired),
      await enrol("fn-nobody", good),
      await enrol(gone, await it.issue(gone)),
    ];
    expect(new Set(cases.map(({ status, body }) => `${status} ${body.detail}`)).size).toBe(1);
    expect(cases[0]?.status).toBe(401);
    expect((await it.nodeOf(node)).facts.enrollment?.consumedAt).toBeNull();
    expect((await enrol(node, good)).status).toBe(200);
  });

  test("by a newer token ends the agent of before", async () => {
    const { node, bearer } = await enrolled();
    expect((await wait(node, bearer)).status).toBe(200);
    const next = await it.enrol(node);
    expect((await wait(node, bearer)).status).toBe(403);
    expect((await wait(node, next)).status).toBe(200);
  });

  test("is bounded in what it takes", async () => {
    const node = await it.makeNode();
    expect((await enrol(node, "x".repeat(257))).status).toBe(422);
    expect((await enrol(node, "x", "short")).status).toBe(422);
    expect((await enrol(node, "x".repeat(70_000))).status).toBe(413);
  });
});

describe("a bearer", () => {
  test("speaks for its own node alone, and for nothing else", async () => {
    const [mine, other] = [await enrolled(), await enrolled()];
    const task = await it.makeTask(other.node);
    expect((await wait(other.node, mine.bearer)).status).toBe(403);
    expect((await wait("fn-nobody", mine.bearer)).status).toBe(403);
    expect((await answer(other.node, mine.bearer, task, drained)).status).toBe(403);
    expect((await answer(mine.node, mine.bearer, task, drained)).status).toBe(404);
    expect((await it.taskOf(task)).state.name).toBe("queued");
    const elsewhere = await fetch(`${it.server.httpUrl}/api/v1/fleet/sites`, {
      headers: { authorization: `Bearer ${mine.bearer}` },
    });
    expect(elsewhere.status).toBe(403);
  });

  test("is needed: neither strangers nor people are let in", async () => {
    const { node } = await enrolled();
    const { token } = await createToken(it.db, { name: "pat", roles: ["admin"], createdBy: "test" });
    expect((await it.call("GET", `${node}/tasks/wait`)).status).toBe(401);
    expect((await wait(node, token)).status).toBe(403);
    expect((await wait(node, `mw_${"0".repeat(16)}_${"0".repeat(64)}`)).status).toBe(401);
  });

  test("of the agent role that is bound to no node opens nothing", async () => {
    const { node } = await enrolled();
    const { token } = await createToken(it.db, { name: "odd", roles: ["agent"], createdBy: "test" });
    expect((await wait(node, token)).status).toBe(403);
  });

  test("is refused at once, by every replica, when the agent is dismissed or its node deleted", async () => {
    const [dismissed, deleted] = [await enrolled(), await enrolled()];
    for (const { node, bearer } of [dismissed, deleted]) expect((await wait(node, bearer)).status).toBe(200);
    await dismissAgent(it.db, dismissed.node);
    await it.db.execute("update fleet_nodes set state = 'deleted' where id = $1", [deleted.node]);
    for (const { node, bearer } of [dismissed, deleted]) expect((await wait(node, bearer)).status).toBe(403);
  });

  test("may call often, and not without end", async () => {
    const { node, bearer } = await enrolled();
    const statuses = await Promise.all(Array.from({ length: 90 }, async () => (await wait(node, bearer)).status));
    expect(statuses).toContain(200);
    expect(statuses).toContain(429);
  });
});

describe("a task", () => {
  test("is signed, with the node and an end, for the agent that takes it", async () => {
    const node = await it.makeNode();
    const { body } = await enrol(node, await it.issue(node));
    const id = await it.makeTask(node, { params: { grace: 5 } });
    const { task } = (await wait(node, body.bearer)).body;
    expect(JSON.parse(task?.signed ?? "")).toEqual({
      ...{ task_id: id, node_id: node, task_type: "node.drain", params: { grace: 5 }, expires_at: task?.expires_at },
    });
    const isGenuine = (text: string) =>
      verify(null, Buffer.from(text), createPublicKey(body.public_key), Buffer.from(task?.signature ?? "", "base64"));
    expect(isGenuine(task?.signed ?? "")).toBe(true);
    expect(isGenuine((task?.signed ?? "").replace("drain", "uninstall"))).toBe(false);
  });

  test("is given to an agent that waits as soon as there is one", async () => {
    const { node, bearer } = await enrolled();
    const waiting = wait(node, bearer, "wait_seconds=20");
    await eventually(async () => (await findHeartbeats(it.db, [node])).has(node), { what: "the agent waits" });
    const id = await it.makeTask(node);
    expect((await waiting).body.task?.task_id).toBe(id);
  });

  test("is taken by one of two calls that race, also at two replicas", { tags: "race" }, async () => {
    const replica = await it.startReplica();
    try {
      const { node, bearer } = await enrolled();
      for (let round = 0; round < 5; round += 1) {
        const id = await it.makeTask(node);
        const both = await Promise.all([wait(node, bearer, "claim=a"), wait(node, bearer, "claim=b", replica.httpUrl)]);
        const taken = both.flatMap(({ body }) => body.task?.task_id ?? []);
        expect(taken).toEqual([id]);
        await answer(node, bearer, id, drained);
      }
    } finally {
      await replica.stop();
    }
  });

  test("whose claim was answered and got lost is given again to the same claim, and to no other", async () => {
    const { node, bearer } = await enrolled();
    const id = await it.makeTask(node);
    expect((await wait(node, bearer, "wait_seconds=0&claim=c1")).body.task?.task_id).toBe(id);
    expect((await wait(node, bearer, "wait_seconds=0&claim=c2")).body.task).toBeNull();
    expect((await wait(node, bearer, "wait_seconds=0&claim=c1")).body.task?.task_id).toBe(id);
  });

  test("ends as expired when the agent that took it falls silent, and its late answer counts no more", async () => {
    const { node, bearer } = await enrolled();
    const id = await it.makeTask(node);
    await wait(node, bearer);
    await eventually(async () => (await it.taskOf(id)).state.name === "expired", { what: "the lease has ended" });
    expect((await answer(node, bearer, id, drained)).status).toBe(400);
    expect((await it.call("POST", `${node}/tasks/${id}/renew`, { bearer })).status).toBe(400);
    expect((await it.taskOf(id)).facts.result).toBeNull();
  });

  test("goes on as long as its agent renews", async () => {
    const { node, bearer } = await enrolled();
    const id = await it.makeTask(node);
    await wait(node, bearer);
    const leaseOf = async () => (await it.taskOf(id)).facts.leaseUntil ?? "";
    const first = await leaseOf();
    const renewed = await it.call<{ lease_until: string }>("POST", `${node}/tasks/${id}/renew`, { bearer });
    expect(renewed.body.lease_until > first).toBe(true);
    expect(await leaseOf()).toBe(renewed.body.lease_until);
  });

  test("is given up when no agent takes it in time", async () => {
    const node = await it.makeNode();
    const id = await it.makeTask(node, { ttl: 200 });
    await eventually(async () => (await it.taskOf(id)).state.name === "expired", { what: "it is given up" });
  });

  test("takes the same answer twice, and no other after the first", async () => {
    const { node, bearer } = await enrolled();
    const id = await it.makeTask(node);
    await wait(node, bearer);
    expect((await answer(node, bearer, id, drained)).status).toBe(200);
    const { version } = await it.taskOf(id);
    expect((await answer(node, bearer, id, drained)).status).toBe(200);
    expect((await answer(node, bearer, id, { outcome: "failed", message: "no" })).status).toBe(400);
    expect(await it.taskOf(id)).toMatchObject({ version, state: { name: "completed" } });
  });

  test("that nobody has taken cannot be answered", async () => {
    const { node, bearer } = await enrolled();
    const id = await it.makeTask(node);
    expect((await answer(node, bearer, id, drained)).status).toBe(400);
    expect((await it.taskOf(id)).state.name).toBe("queued");
  });
});

test("a task that ended long ago is forgotten, unless it is live or a run goes by it", async () => {
  const { node, bearer } = await enrolled();
  const [old, recent, held, live] = [
    await it.makeTask(node),
    await it.makeTask(node),
    await it.makeTask(node),
    await it.makeTask(node),
  ];
  for (const id of [old, recent, held]) {
    expect((await wait(node, bearer)).body.task?.task_id).toBe(id);
    expect((await answer(node, bearer, id, drained)).status).toBe(200);
  }
  await it.db.execute("update fleet_tasks set state_since = now() - interval '2 days' where id = any($1)", [
    [old, held, live],
  ]);
  await it.db.execute(`update fleet_tasks set facts = facts || '{"run":"run-held"}' where id = $1`, [held]);
  await it.db.execute(
    `insert into runs (id, target_kind, target_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state)
     values ('run-held', 'rack', 'r-1', 'r', '', 'T', 'p', '{}', 'j', 'kim', 'PENDING')`,
  );
  expect(await forgetTasks(it.db, hours(24), 100)).toBe(1);
  const kept = await it.db.query<{ id: string }>("select id from fleet_tasks where node_id = $1", [node]);
  expect(kept.map(({ id }) => id).toSorted()).toEqual([recent, held, live].toSorted());
  expect((await answer(node, bearer, old, drained)).status).toBe(404);
});

describe("a sign of life", () => {
  test("is each call, and says how the node is only where the agent does", async () => {
    const { node, bearer } = await enrolled();
    const heard = async () => (await findHeartbeats(it.db, [node])).get(node);
    expect(await heard()).toBeUndefined();
    await wait(node, bearer);
    expect(await heard()).toMatchObject({ health: null });
    const say = (health: string) =>
      it.call("POST", `${node}/heartbeat`, { bearer, body: { health, message: "fine", agent_version: "1.2" } });
    expect((await say("healthy")).status).toBe(200);
    expect(await heard()).toMatchObject({ health: "healthy", message: "fine", agentVersion: "1.2" });
    await wait(node, bearer);
    expect(await heard()).toMatchObject({ health: "healthy", message: "fine" });
    expect((await say("well")).status).toBe(422);
  });

  test("changes nothing of the node itself", async () => {
    const { node, bearer } = await enrolled();
    const { version } = await it.nodeOf(node);
    await wait(node, bearer);
    expect((await it.nodeOf(node)).version).toBe(version);
  });
});

test("a stop answers agents that wait, and does not wait for them", async () => {
  const replica = await it.startReplica();
  const { node, bearer } = await enrolled();
  const waiting = wait(node, bearer, "wait_seconds=60", replica.httpUrl);
  await eventually(async () => (await findHeartbeats(it.db, [node])).has(node), { what: "the agent waits" });
  await replica.stop();
  expect((await waiting).body).toEqual({ task: null });
});
