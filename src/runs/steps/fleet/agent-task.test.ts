import { describe, expect, test } from "vitest";
import { aFleetNode } from "../../../../test/support/fleet/fleet-node.ts";
import type { CreateEffect } from "../../../kernel/effects.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import type { FleetTask } from "../../../lifecycles/fleet-task/fleet-task.ts";
import { readProbe } from "../../model/step.ts";
import type { AgentOfNode } from "./agent-of-node.ts";
import { agentTask } from "./agent-task.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const ago = (ms: number): Date => new Date(NOW.getTime() - ms);

const drain = agentTask({
  kind: "drain",
  taskType: "node.drain",
  failure: "drain_failed",
  withoutAgent: "done",
});
const validate = agentTask({
  kind: "validate",
  taskType: "node.validate_clean",
  failure: "validation_failed",
  withoutAgent: "fail",
});

const task = (name: string, facts: Partial<FleetTask["facts"]> = {}, more: Partial<FleetTask> = {}): FleetTask => ({
  id: "ft-1",
  version: 1,
  basis: 1,
  state: { name },
  stateSince: NOW,
  stateVersion: 1,
  outcome: null,
  nodeId: "fn-1",
  taskType: "node.drain",
  params: {},
  expiresAt: new Date(NOW.getTime() + minutes(15)),
  createdAt: NOW,
  ...more,
  facts: {
    run: "run-0",
    dispatchedAt: null,
    leaseUntil: null,
    claim: null,
    finishedAt: null,
    message: "",
    result: null,
    ...facts,
  },
});

const agentWith = (known: Partial<AgentOfNode>): AgentOfNode => ({
  isEnrolled: async () => true,
  lastHeard: async () => ({ seenAt: NOW, health: "healthy", message: "" }),
  findTask: async () => null,
  findLiveTask: async () => null,
  dismiss: async () => {},
  taskTtl: minutes(15),
  silentAfter: minutes(3),
  ...known,
});

type Step = typeof drain;
type Evidence = Awaited<ReturnType<Step["before"]>>;
const contextWith = (agent: Partial<AgentOfNode>, more: object = {}) =>
  ({
    payload: { params: { grace: 5 }, silent_is_done: false },
    runId: "run-1",
    target: aFleetNode("draining"),
    agent: agentWith(agent),
    clock: { now: () => NOW },
    actingAt: NOW,
    ...more,
  }) as unknown as Parameters<Step["probe"]>[0];
const acting = (evidence: Evidence, agent: Partial<AgentOfNode> = {}, more: object = {}) =>
  contextWith(agent, { evidence, ...more });
const OWN = { task: "ft-1", adopted: false } as const;

describe("a step that asks the agent for something", () => {
  test("makes one task, whose result wakes the run", async () => {
    const evidence = await drain.before(contextWith({}));
    expect(evidence).toMatchObject({ adopted: false });
    const acted = await drain.act(acting(evidence));
    expect(acted?.effects).toHaveLength(1);
    const effect = acted?.effects?.[0] as CreateEffect;
    expect(effect).toMatchObject({ type: "create", kind: "fleet_task", id: "task" in evidence ? evidence.task : "" });
    expect(effect.row).toMatchObject({
      node_id: "fn-1",
      task_type: "node.drain",
      params: { grace: 5 },
      expires_at: "2026-03-01T12:15:00.000Z",
      facts: { run: "run-1" },
    });
  });

  test.each(["queued", "dispatched"])("adopts the live task that is %s, and makes none", async (state) => {
    const live = task(state, { leaseUntil: "2026-03-01T12:01:00.000Z" });
    const evidence = await drain.before(contextWith({ findLiveTask: async () => live }));
    expect(evidence).toEqual({ task: "ft-1", adopted: true });
    const adopting = acting(evidence, { findTask: async () => live }, { actingAt: null });
    expect(readProbe(await drain.probe(adopting)).state).toBe("not_done");
    expect((await drain.act(adopting))?.effects).toEqual([
      { type: "observe", kind: "fleet_task", id: "ft-1", facts: { run: "run-1" }, observed: [] },
    ]);
    expect(readProbe(await drain.probe(acting(evidence, { findTask: async () => live }))).state).toBe("in_progress");
  });

  test("is done by a result that proves the work, and by no other", async () => {
    const answered = (result: FleetTask["facts"]["result"]) =>
      drain.probe(acting(OWN, { findTask: async () => task("completed", { result }) }));
    expect(readProbe(await answered({ drained: true })).state).toBe("done");
    await expect(answered({})).rejects.toMatchObject({ code: "drain_failed", disposition: "fail" });
    await expect(answered({ drained: "yes" })).rejects.toMatchObject({ code: "drain_failed" });
  });

  test("fails with what the agent said", async () => {
    const failed = task("failed", { message: "2 jobs will not end" });
    await expect(drain.probe(acting(OWN, { findTask: async () => failed }))).rejects.toMatchObject({
      code: "drain_failed",
      message: expect.stringContaining("2 jobs will not end"),
    });
  });

  test.each([
    ["expired", task("expired")],
    ["stale, before the engine has said so", task("dispatched", { leaseUntil: "2026-03-01T11:59:59.000Z" })],
  ])("tries again with another task where the one that it had is %s", async (_, ended) => {
    await expect(drain.probe(acting(OWN, { findTask: async () => ended }))).rejects.toMatchObject({
      disposition: "retry",
    });
    const next = await drain.before(contextWith({}));
    expect(next).not.toMatchObject({ task: "ft-1" });
  });

  test("lets a task go that nobody waits for any more", async () => {
    expect((await drain.undo?.(acting(OWN)))?.effects).toEqual([
      expect.objectContaining({ type: "move", id: "ft-1", cause: "not_needed", ifPossible: true }),
    ]);
  });
});

describe("where there is no agent to ask", () => {
  test("a drain counts as done, and a validation has failed", async () => {
    const none = { isEnrolled: async () => false };
    const evidence = await drain.before(contextWith(none));
    expect(await drain.act(acting(evidence, none))).toBeUndefined();
    expect(readProbe(await drain.probe(acting(evidence, none))).state).toBe("done");
    await expect(validate.before(contextWith(none) as never)).rejects.toMatchObject({ code: "validation_failed" });
  });

  test("a silent agent is waited for, unless its silence counts as done", async () => {
    const silent = { lastHeard: async () => ({ seenAt: ago(minutes(3)), health: null, message: "" }) };
    expect(await drain.before(contextWith(silent))).toMatchObject({ adopted: false });
    const enough = { payload: drain.parse({ silent_is_done: true }, "payload") };
    expect(await drain.before(contextWith(silent, enough))).toMatchObject({ nobody: expect.any(String) });
    const queued = { ...silent, findTask: async () => task("queued") };
    expect(readProbe(await drain.probe(acting(OWN, queued))).state).toBe("in_progress");
    expect(readProbe(await drain.probe(acting(OWN, queued, enough)))).toMatchObject({
      state: "done",
      effects: [expect.objectContaining({ cause: "not_needed" })],
    });
  });

  test("an agent that was heard a moment ago is asked, whatever its silence would mean", async () => {
    const enough = { payload: drain.parse({ silent_is_done: true }, "payload") };
    const heard = { lastHeard: async () => ({ seenAt: ago(minutes(3) - 1), health: null, message: "" }) };
    expect(await drain.before(contextWith(heard, enough))).toMatchObject({ adopted: false });
  });
});
