import { describe, expect, test } from "vitest";
import { follow } from "../../kernel/decide.ts";
import type { FleetTask } from "./fleet-task.ts";
import { isLive } from "./fleet-task.ts";
import { type FleetTaskContext, fleetTaskHandlers } from "./handlers.ts";
import { fleetTaskLifecycle } from "./lifecycle.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const at = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1_000);
const context = { clock: { now: () => NOW } } as FleetTaskContext;

const task = (name: string, more: Partial<FleetTask> = {}, facts: Partial<FleetTask["facts"]> = {}): FleetTask => ({
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
  expiresAt: at(900),
  createdAt: NOW,
  ...more,
  facts: {
    run: "run-1",
    dispatchedAt: null,
    leaseUntil: null,
    claim: null,
    finishedAt: null,
    message: "",
    result: null,
    ...facts,
  },
});

test("a task is taken once, answered once, and ends where nobody takes or answers it", () => {
  const rows = fleetTaskLifecycle.transitions.map(([from, { owner, name }, to]) => [from, `${owner} ${name}`, to]);
  expect(rows).toEqual([
    ["queued", "agent claimed", "dispatched"],
    ["queued", "handler ttl_elapsed", "expired"],
    ["queued", "other not_needed", "cancelled"],
    ["dispatched", "agent renewed", "(stay)"],
    ["dispatched", "agent completed", "completed"],
    ["dispatched", "agent failed", "failed"],
    ["dispatched", "handler lease_elapsed", "expired"],
  ]);
});

test("a task that has ended takes no word of an agent any more", () => {
  for (const ended of ["completed", "failed", "expired", "cancelled"])
    for (const name of ["claimed", "renewed", "completed", "failed"])
      expect(follow(fleetTaskLifecycle, task(ended), { owner: "agent", name })).toBeUndefined();
});

test("a renewal moves the lease, and neither the state nor what the claim was", () => {
  const move = follow(fleetTaskLifecycle, task("dispatched"), {
    owner: "agent",
    name: "renewed",
    data: { leaseUntil: at(600).toISOString() },
  });
  expect(move).toMatchObject({ to: "dispatched", facts: { leaseUntil: at(600).toISOString() } });
  expect(move?.facts).not.toHaveProperty("claim");
});

describe("the engine", () => {
  test("waits for an agent until the task expires, and not longer", async () => {
    expect(await fleetTaskHandlers.queued(task("queued"), context)).toMatchObject({ type: "waiting", after: 900_000 });
    expect(await fleetTaskHandlers.queued(task("queued", { expiresAt: NOW }), context)).toMatchObject({
      event: "ttl_elapsed",
    });
  });

  test("waits for an answer until the lease ends, and not longer", async () => {
    const held = task("dispatched", {}, { leaseUntil: at(300).toISOString() });
    expect(await fleetTaskHandlers.dispatched(held, context)).toMatchObject({ type: "waiting", after: 300_000 });
    const stale = task("dispatched", {}, { leaseUntil: NOW.toISOString() });
    expect(await fleetTaskHandlers.dispatched(stale, context)).toMatchObject({ event: "lease_elapsed" });
    expect(await fleetTaskHandlers.dispatched(task("dispatched"), context)).toMatchObject({ event: "lease_elapsed" });
  });
});

test("live is what still comes to an end of its own: also before the engine has said of a stale one that it is", () => {
  expect(isLive(task("queued"), NOW)).toBe(true);
  expect(isLive(task("queued", { expiresAt: NOW }), NOW)).toBe(false);
  expect(isLive(task("dispatched", {}, { leaseUntil: at(1).toISOString() }), NOW)).toBe(true);
  expect(isLive(task("dispatched", {}, { leaseUntil: NOW.toISOString() }), NOW)).toBe(false);
  expect(isLive(task("completed"), NOW)).toBe(false);
});
