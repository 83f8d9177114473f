// @module-tag race
import { beforeEach, describe, expect, test } from "vitest";
import { createCommitter, type Submission } from "../../../src/engine/committer.ts";
import { follow } from "../../../src/kernel/decide.ts";
import { create, type Effect, move as moving, observe, require, wake } from "../../../src/kernel/effects.ts";
import type { JsonObject, Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { milliseconds, minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { recordChange } from "../../../src/store/lifecycle/changes.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../../../src/store/lifecycle/commit/unit.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { applyVerb, type Verb } from "../../../src/store/lifecycle/verbs.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { wishFor } from "../../support/claims.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  addWidgets,
  createWidgetTable,
  getWidget,
  placeWidgets,
  type Widget,
  widgetKey,
  widgetLifecycle,
  widgetStores,
} from "../../support/widget.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(() => database.db.query("truncate claims, work, widgets, journal"));
afterAll(() => database.drop());

const widget = (id: string) => getWidget(database.db, id);
const commit = (...units: Unit[]) => database.db.transaction((tx) => commitUnits(tx, widgetStores, units));

const moveOf = (thing: Widget, owner: "handler" | "other" | "caller" | "agent", name: string, message?: string) => {
  const move = follow(widgetLifecycle as unknown as Lifecycle<Thing>, thing, { owner, name, message });
  if (!move) throw new Error(`${thing.state.name} knows no ${name}`);
  return move;
};
const unitOf = async (id: string, more: Partial<Unit> = {}): Promise<Unit> => ({
  kind: "widget",
  thing: await widget(id),
  actor: "test",
  ...more,
});
const kick = (id: string): Effect => moving(widgetLifecycle, id, "kicked", { message: "a kick" });
const make = (id: string, row: JsonObject = {}): Effect => create(widgetLifecycle, id, row);

interface Event {
  version: number;
  type: string;
  from_state: string | null;
  to_state: string | null;
  actor: string;
  reason: string | null;
  data: JsonObject;
}
/** What was told of a widget, but for its creation. */
const eventsOf = (id: string) =>
  database.db.query<Event>(
    `select version, type, from_state, to_state, actor, reason, data from journal where id = $1 and type <> 'created'
      order by epoch, xid, seq`,
    [id],
  );
const isDue = async (id: string) =>
  (await database.db.query("select 1 from work where id = $1 and wake_at <= now() and lease_until is null", [id]))
    .length === 1;
async function claimAll(): Promise<Map<string, work.ClaimedWork>> {
  const claimed = await work.claim(database.db, {
    owner: "a",
    kinds: ["widget"],
    limit: 1_000,
    leaseFor: seconds(30),
  });
  return new Map(claimed.map((one) => [one.id, one]));
}

describe("one unit", () => {
  test("writes move, facts, outcome, effects, events and wake-ups together", async () => {
    await placeWidgets(database.db, ["w", "other", "sleeper"], "idle");
    const claimed = await claimAll();
    await work.release(
      database.db,
      [...claimed.values()].map((one) => ({ ...one, after: null, error: null })),
    );
    await database.db.query("update widgets set state = 'kicked' where id = 'w'");
    const unit = await unitOf("w", { facts: { size: 4 } });
    const effects: Effect[] = [kick("other"), make("child", { facts: { size: 2 } }), wake(widgetLifecycle, "sleeper")];
    const move = moveOf(unit.thing as Widget, "handler", "settled");
    expect(await commit({ ...unit, move, effects })).toEqual([{ type: "committed" }]);

    expect(await widget("w")).toMatchObject({
      state: { name: "idle" },
      stateVersion: 2,
      facts: { size: 4 },
      outcome: null,
    });
    expect(await eventsOf("w")).toMatchObject([
      {
        version: unit.thing.version + 1,
        type: "transition",
        from_state: "kicked",
        to_state: "idle",
        data: { facts: { size: 4 } },
      },
    ]);
    expect(await widget("other")).toMatchObject({ state: { name: "kicked", cause: "a kick" }, version: 2 });
    expect(await eventsOf("other")).toMatchObject([
      { version: 2, to_state: "kicked", actor: "widget w", reason: "a kick" },
    ]);
    expect(await widget("child")).toMatchObject({ state: { name: "fresh" }, facts: { size: 2 } });
    for (const id of ["other", "child", "sleeper"]) expect(await isDue(id)).toBe(true);
  });

  test("tells of another thing only what was not known of it", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const learns = async (facts: JsonObject) =>
      commit(await unitOf("w", { effects: [observe(widgetLifecycle, "other", facts)] }));
    await learns({ size: 4 });
    await learns({ size: 4 });
    await learns({ size: 4, parts: [1] });
    expect(await eventsOf("other")).toMatchObject([
      { version: 2, type: "facts_changed", data: { facts: { size: 4 } } },
      { version: 3, type: "facts_changed", data: { facts: { parts: [1] } } },
    ]);
    expect((await eventsOf("other"))[1]?.data).toEqual({ facts: { parts: [1] } });
    expect(await widget("other")).toMatchObject({ version: 3, facts: { size: 4 } });
  });

  test("writes nothing at all when one part of it cannot be written", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const unit = await unitOf("w", { facts: { size: 13 }, effects: [kick("other"), make("child")] });
    await expect(commit(unit)).rejects.toMatchObject({ code: "23514" });
    expect(await widget("w")).toMatchObject({ version: 1, facts: {} });
    expect(await widget("other")).toMatchObject({ version: 1, state: { name: "idle" } });
    await expect(widget("child")).rejects.toThrow("does not exist");
    expect(await eventsOf("w")).toEqual([]);
  });

  test.each<[string, string, string]>([
    ["does not exist", "nobody", "widget nobody does not exist, so kicked cannot move it"],
    ["is in another state", "fresh", "widget fresh is fresh, where kicked leads nowhere"],
    [
      "cannot be read",
      "broken",
      'widget broken cannot be read (facts.size: "big" is no number), so kicked cannot move it',
    ],
  ])("is refused as a whole when the thing that it moves %s, and says so", async (_, target, message) => {
    await placeWidgets(database.db, ["w", "broken"], "idle");
    await addWidgets(database.db, ["fresh"]);
    await database.db.query(`update widgets set facts = '{"size":"big"}' where id = 'broken'`);
    await expect(commit(await unitOf("w", { facts: { size: 1 }, effects: [kick(target)] }))).rejects.toThrow(message);
    expect((await widget("w")).version).toBe(1);
  });

  test("is dropped whole when a thing that it relies on is not there any more", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const requiring = (id: string): Effect[] => [require(widgetLifecycle, id), make(`child of ${id}`)];
    const lost = await unitOf("w", { facts: { size: 4 }, effects: requiring("nobody") });
    expect(await commit(lost)).toEqual([{ type: "conflict" }]);
    expect((await widget("w")).facts).toEqual({});
    await expect(widget("child of nobody")).rejects.toThrow("does not exist");
    expect(await commit(await unitOf("w", { facts: { size: 4 }, effects: requiring("other") }))).toEqual([
      { type: "committed" },
    ]);
    expect((await widget("other")).version).toBe(1);
  });

  test("is dropped when an earlier unit of the same batch removed what it relies on", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const scrap = await unitOf("other");
    const move = moveOf(scrap.thing as Widget, "caller", "scrap");
    const unit = await unitOf("w", { facts: { size: 4 }, effects: [require(widgetLifecycle, "other")] });
    expect(await commit({ ...scrap, move }, unit)).toEqual([{ type: "committed" }, { type: "conflict" }]);
  });

  test("is dropped whole when the thing has changed since it was loaded", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const stale = await unitOf("w", { facts: { size: 4 }, effects: [kick("other"), make("child")] });
    await commit(await unitOf("w", { facts: { size: 1 } }));
    expect(await commit(stale)).toEqual([{ type: "conflict" }]);
    expect(await widget("w")).toMatchObject({ version: 2, facts: { size: 1 } });
    expect((await widget("other")).version).toBe(1);
    await expect(widget("child")).rejects.toThrow("does not exist");
    expect(await eventsOf("w")).toHaveLength(1);
  });

  test("is dropped when the thing is gone", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const stale = await unitOf("w", { facts: { size: 4 } });
    await database.db.query("delete from widgets where id = 'w'");
    expect(await commit(stale)).toEqual([{ type: "conflict" }]);
  });

  test("writes nothing when somebody else has the lease", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const claimed = await claimAll();
    const epoch = claimed.get("w")?.epoch ?? 0;
    const unit = await unitOf("w", { facts: { size: 4 }, effects: [kick("other")] });
    await database.db.query("update work set epoch = epoch + 1 where id = 'w'");
    expect(await commit({ ...unit, lease: { epoch } })).toEqual([{ type: "fenced" }]);
    expect((await widget("w")).version).toBe(1);
    expect((await widget("other")).version).toBe(1);
    expect(await commit({ ...unit, lease: { epoch: epoch + 1 } })).toEqual([{ type: "committed" }]);
  });

  test("tells nobody when only quiet facts changed, and tells the loud ones alone otherwise", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    await commit(await unitOf("w", { facts: { heartbeat: 1 } }));
    expect(await widget("w")).toMatchObject({ version: 2, facts: { heartbeat: 1 } });
    expect(await eventsOf("w")).toEqual([]);
    await commit(await unitOf("w", { facts: { heartbeat: 2, size: 3 } }));
    expect(await eventsOf("w")).toMatchObject([{ version: 3, type: "facts_changed", data: { facts: { size: 3 } } }]);
    expect((await eventsOf("w"))[0]?.data).toEqual({ facts: { size: 3 } });
  });

  test("tells what loud facts were before, where something was known", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    await commit(await unitOf("w", { facts: { label: "A", heartbeat: 1 } }));
    await commit(await unitOf("w", { facts: { label: "B", heartbeat: 2 } }));
    const [, second] = await eventsOf("w");
    expect(second?.data).toEqual({ facts: { label: "B" }, was: { label: "A" } });
  });

  test("keeps since when looks have failed, however they fail, and begins again after that", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const sinces: (string | undefined)[] = [];
    for (const outcome of [
      { type: "failing", reason: "no answer" },
      { type: "failing", reason: "no route" },
      { type: "needs_intervention", reason: "no power" },
      { type: "waiting", reason: "slow" },
      { type: "failing", reason: "no answer" },
    ] as const) {
      await commit(await unitOf("w", { outcome }));
      sinces.push((await widget("w")).outcome?.since);
    }
    const [first, ...rest] = sinces;
    expect(first).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(rest.slice(0, 2)).toEqual([first, first]);
    expect(new Set(sinces).size).toBe(3);
  });

  test("tells of every change of the outcome, once, and of the recovery", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    for (const outcome of [
      { type: "failing", reason: "no answer" },
      { type: "failing", reason: "no answer" },
      { type: "waiting", reason: "no answer" },
      null,
    ] as const)
      await commit(await unitOf("w", { outcome }));
    expect((await eventsOf("w")).map(({ version, type, reason }) => `${version} ${type} ${reason}`)).toEqual([
      "2 failing no answer",
      "4 waiting no answer",
      "5 recovered null",
    ]);
    expect(await database.db.query("select 1 from widgets where outcome is null")).toHaveLength(1);
  });

  test("keeps what the state carries unless it moves", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const thing = await widget("w");
    await commit({ kind: "widget", thing, move: moveOf(thing, "other", "kicked", "why"), actor: "test" });
    await commit(await unitOf("w", { facts: { size: 1 }, outcome: { type: "waiting", reason: "slow" } }));
    expect(await widget("w")).toMatchObject({ state: { name: "kicked", cause: "why" }, stateVersion: 2, version: 3 });
  });

  test("is written whatever characters a device put into its answers", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    await commit(await unitOf("w", { facts: { label: "A\0B" }, outcome: { type: "failing", reason: "said \ud800" } }));
    expect(await widget("w")).toMatchObject({ facts: { label: "A\ufffdB" }, outcome: { reason: "said \ufffd" } });
  });
});

describe("several units of one transaction", () => {
  test("do not overwrite each other when one moves the thing of another", async () => {
    await placeWidgets(database.db, ["a", "b"], "idle");
    const kicker = await unitOf("a", { facts: { size: 1 }, effects: [kick("b")] });
    const own = await unitOf("b", { facts: { size: 2 } });
    expect(await commit(kicker, own)).toEqual([{ type: "committed" }, { type: "conflict" }]);
    expect(await widget("b")).toMatchObject({ state: { name: "kicked" }, version: 2, facts: {} });
  });

  test("see each other's writes in the order in which they stand", async () => {
    await placeWidgets(database.db, ["a", "b"], "idle");
    const own = await unitOf("b", { facts: { size: 2 } });
    const kicker = await unitOf("a", { facts: { size: 1 }, effects: [kick("b")] });
    expect(await commit(own, kicker)).toEqual([{ type: "committed" }, { type: "committed" }]);
    expect(await widget("b")).toMatchObject({ state: { name: "kicked" }, version: 3, facts: { size: 2 } });
    expect((await eventsOf("b")).map(({ version }) => version)).toEqual([2, 3]);
  });

  test("cannot both move the same thing", async () => {
    await placeWidgets(database.db, ["a", "b", "target"], "idle");
    const both = await Promise.all(["a", "b"].map((id) => unitOf(id, { effects: [kick("target")] })));
    await expect(commit(...both)).rejects.toThrow("widget target is kicked, where kicked leads nowhere");
    expect((await widget("target")).version).toBe(1);
  });
});

describe("the committer", () => {
  const committer = (most = 500) =>
    createCommitter({ db: database.db, stores: widgetStores, most, atOnce: 2, claimRecheck: seconds(30), onDue() {} });
  const submissions = async (ids: readonly string[], more: (id: string) => Partial<Unit>): Promise<Submission[]> => {
    const claimed = await claimAll();
    return Promise.all(
      ids.map(async (id) => {
        const own = claimed.get(id);
        if (!own) throw new Error(`${id} was not due`);
        const unit = await unitOf(id, { lease: { epoch: own.epoch }, ...more(id) });
        return { claimed: own, unit, release: { after: minutes(5), failures: 0, error: null } };
      }),
    );
  };
  const workOf = async (id: string) =>
    (
      await database.db.query<{ failures: number; last_error: string | null; leased: boolean; wait: number }>(
        `select failures, last_error, lease_until is not null as leased, extract(epoch from wake_at - now())::float8 as wait
           from work where id = $1`,
        [id],
      )
    )[0];

  test("writes a batch with one unit that can never be written without it, and sets that one aside with its error", async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `w${index}`);
    await placeWidgets(database.db, ids, "idle");
    const all = await submissions(ids, (id) => ({
      facts: { size: id === "w7" ? 13 : 1 },
      effects: [make(`child-of-${id}`)],
    }));
    const one = committer();
    const results = await Promise.all(all.map((submission) => one.submit(submission)));

    expect(results.filter(({ type }) => type === "committed")).toHaveLength(19);
    expect(results[7]).toMatchObject({ type: "quarantined", error: expect.stringContaining("widgets_facts_check") });
    expect(await workOf("w7")).toMatchObject({
      failures: 1,
      leased: false,
      last_error: expect.stringContaining("widgets_facts_check"),
    });
    expect((await workOf("w7"))?.wait).toBeGreaterThan(0.5);
    expect((await widget("w7")).version).toBe(1);
    await expect(widget("child-of-w7")).rejects.toThrow("does not exist");
    expect(await workOf("w8")).toMatchObject({ failures: 0, last_error: null, leased: false });
    for (const id of ["w0", "w6", "w8", "w19"]) {
      expect((await widget(id)).facts).toEqual({ size: 1 });
      expect((await eventsOf(id)).map(({ version }) => version)).toEqual([2]);
    }
  });

  test("of two units that move the same thing writes the first and sets the second aside, whole", async () => {
    await placeWidgets(database.db, ["a", "b", "target"], "idle");
    const all = await submissions(["a", "b"], () => ({ facts: { size: 1 }, effects: [kick("target")] }));
    const one = committer();
    const results = await Promise.all(all.map((submission) => one.submit(submission)));
    expect(results.map(({ type }) => type)).toEqual(["committed", "quarantined"]);
    expect((await widget("b")).facts).toEqual({});
    expect(await widget("target")).toMatchObject({ version: 2 });
  });

  test("leaves a thing due whose unit was dropped for a conflict", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const [one] = await submissions(["w"], () => ({ facts: { size: 1 } }));
    if (!one) throw new Error("nothing to submit");
    await commit(await unitOf("w", { facts: { size: 2 } }));
    expect(await committer().submit(one)).toEqual({ type: "conflict" });
    expect(await isDue("w")).toBe(true);
  });

  test("comes back to a thing at once after one conflict, and after growing pauses when they go on", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const one = committer();
    const conflict = async (turn: number) => {
      await database.db.query("update work set wake_at = now() where id = 'w'");
      const [late] = await submissions(["w"], () => ({ facts: { size: -1 } }));
      if (!late) throw new Error("nothing to submit");
      await commit(await unitOf("w", { facts: { size: turn } }));
      expect(await one.submit(late)).toEqual({ type: "conflict" });
      const [row] = await database.db.query<{ wait: number }>(
        "select extract(epoch from wake_at - now())::float8 * 1000 as wait from work where id = 'w'",
      );
      return row?.wait ?? Number.NaN;
    };
    expect(await conflict(100)).toBeLessThanOrEqual(0);
    for (let turn = 101; turn < 108; turn += 1) await conflict(turn);
    expect(await conflict(108)).toBeGreaterThan(1_000);

    await database.db.query("update work set wake_at = now() where id = 'w'");
    const [good] = await submissions(["w"], () => ({ facts: { size: 7 } }));
    if (!good) throw new Error("nothing to submit");
    expect(await one.submit(good)).toEqual({ type: "committed" });
    expect(await conflict(109)).toBeLessThanOrEqual(0);
  });

  test("touches neither the thing nor the lease of somebody who took over", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const [one] = await submissions(["w"], () => ({ facts: { size: 1 } }));
    if (!one) throw new Error("nothing to submit");
    await database.db.query("update work set epoch = epoch + 1, lease_owner = 'b' where id = 'w'");
    expect(await committer().submit(one)).toEqual({ type: "fenced" });
    expect((await widget("w")).version).toBe(1);
    expect(await workOf("w")).toMatchObject({ leased: true });
  });

  test("gives a lease back in the transaction that writes the unit, and keeps it for a pass that goes on", async () => {
    await placeWidgets(database.db, ["done", "goes-on"], "idle");
    const [done, goesOn] = await submissions(["done", "goes-on"], () => ({ facts: { size: 1 } }));
    if (!done || !goesOn) throw new Error("nothing to submit");
    const { release: _, ...kept } = goesOn;
    const one = committer();
    await Promise.all([one.submit(done), one.submit(kept)]);
    expect((await workOf("done"))?.leased).toBe(false);
    expect((await workOf("goes-on"))?.leased).toBe(true);
  });

  test("releases of looks that changed nothing travel along", async () => {
    await placeWidgets(database.db, ["changed", "same"], "idle");
    const [changed, same] = await submissions(["changed", "same"], () => ({ facts: { size: 1 } }));
    if (!changed || !same) throw new Error("nothing to submit");
    const { unit: _, ...nothing } = same;
    const one = committer();
    expect(await Promise.all([one.submit(changed), one.submit(nothing)])).toEqual([
      { type: "committed" },
      { type: "committed" },
    ]);
    expect((await widget("same")).version).toBe(1);
    expect((await workOf("same"))?.leased).toBe(false);
  });
});

describe("changes by others", () => {
  const change = (touchesBasis?: boolean) =>
    database.db.transaction(async (tx) => {
      await lockThings(tx, [widgetKey("w")]);
      await recordChange(tx, storeOf(widgetStores, "widget"), {
        id: "w",
        type: "noted",
        actor: "monitor",
        set: {},
        ...(touchesBasis !== undefined && { touchesBasis }),
      });
    });

  test("of what no guard or handler reads cost no outcome, however many there are, and versions only grow", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const thing = await widget("w");
    const settling = await unitOf("w", { move: moveOf(thing, "handler", "settled") });
    for (let count = 0; count < 3; count += 1) await change(false);
    expect(await commit(settling)).toEqual([{ type: "committed" }]);
    await change(false);
    expect((await eventsOf("w")).map(({ type, version }) => [type, version])).toEqual([
      ["noted", 2],
      ["noted", 3],
      ["noted", 4],
      ["transition", 5],
      ["noted", 6],
    ]);
    expect((await widget("w")).version).toBe(6);
  });

  test("of what they read drop the outcome", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const settling = await unitOf("w", { move: moveOf(await widget("w"), "handler", "settled") });
    await change();
    expect(await commit(settling)).toEqual([{ type: "conflict" }]);
    expect((await widget("w")).state.name).toBe("kicked");
  });

  test("a thing's end is told with its own version, after all that came before", async () => {
    await placeWidgets(database.db, ["w"], "leaving");
    const leaving = await unitOf("w", { move: moveOf(await widget("w"), "handler", "left") });
    await change(false);
    expect(await commit(leaving)).toEqual([{ type: "committed" }]);
    expect((await eventsOf("w")).map(({ type, version }) => [type, version])).toEqual([
      ["noted", 2],
      ["deleted", 3],
    ]);
  });

  test("an outcome for a thing that is gone does not fit another of the same name", async () => {
    await placeWidgets(database.db, ["w"], "leaving");
    const late = await unitOf("w", { facts: { size: 1 } });
    await commit(await unitOf("w", { move: moveOf(await widget("w"), "handler", "left") }));
    await placeWidgets(database.db, ["w"], "leaving");
    expect(await commit(late)).toEqual([{ type: "conflict" }]);
  });
});

describe("verbs", () => {
  const apply = (verb: Partial<Verb> & { name: string; id?: string }) =>
    database.db.transaction((tx) =>
      applyVerb(tx, widgetStores, { ...widgetKey("w"), owner: "caller", actor: "tester", ...verb }),
    );

  test("stay in the state and set what the row sets, with an event and no new state version", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const before = await widget("w");
    await apply({ name: "touch" });
    await apply({ name: "pinged", owner: "agent" });
    expect(await widget("w")).toMatchObject({
      facts: { touches: 2 },
      stateVersion: 1,
      version: 3,
      stateSince: before.stateSince,
    });
    expect((await eventsOf("w")).map(({ type, reason, data }) => [type, reason, data.facts])).toEqual([
      ["transition", "touch", { touches: 1 }],
      ["transition", "pinged", { touches: 2 }],
    ]);
  });

  test("whose condition does not hold, or which the state does not know, are refused with those that are possible", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    await apply({ name: "touch" });
    const refused = {
      kind: "failed_precondition",
      message: "widget w is idle: touch is not possible; possible: spin, scrap",
    };
    await expect(apply({ name: "touch" })).rejects.toMatchObject(refused);
    await expect(apply({ name: "touch", id: "nobody" })).rejects.toMatchObject({ kind: "not_found" });
    expect((await widget("w")).version).toBe(2);
  });

  test("from any state remove the thing with its work, and its history stays", async () => {
    await placeWidgets(database.db, ["w"], "broken");
    await apply({ name: "scrap" });
    await expect(widget("w")).rejects.toThrow("does not exist");
    expect(await database.db.query("select 1 from work where id = 'w'")).toEqual([]);
    expect(await eventsOf("w")).toMatchObject([{ version: 2, type: "deleted", from_state: "broken", to_state: null }]);
  });

  test("commit with their effects or not at all", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await apply({ name: "touch", effects: [kick("other")] });
    expect((await widget("other")).state.name).toBe("kicked");
    await expect(apply({ name: "pinged", owner: "agent", effects: [kick("other")] })).rejects.toThrow("leads nowhere");
    expect((await widget("w")).facts).toEqual({ touches: 1 });
  });

  test("that need a claim which another holds are refused and queue for nothing", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const acquire = (id: string) =>
      database.db.transaction((tx) => claims.acquire(tx, [wishFor(widgetKey("w"), { kind: "run", id }, "repave")]));
    await acquire("r1");
    await expect(apply({ name: "employed", owner: "other" })).rejects.toMatchObject({
      kind: "failed_precondition",
      message: "widget w is being worked on by run r1",
    });
    expect(await claims.list(database.db, [widgetKey("w")])).toHaveLength(1);
  });
});

describe("a thing that comes again under its old id", () => {
  test("goes on counting its versions, so that watchers never see them go back", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    await commit(await unitOf("w", { facts: { size: 1 } }));
    await database.db.transaction((tx) =>
      applyVerb(tx, widgetStores, { ...widgetKey("w"), owner: "caller", name: "scrap", actor: "tester" }),
    );
    await addWidgets(database.db, ["w"]);
    expect(await widget("w")).toMatchObject({ version: 4, stateVersion: 1, facts: {} });
    const versions = await database.db.query<{ version: number }>(
      "select version from journal where id = 'w' order by epoch, xid, seq",
    );
    expect(versions.map(({ version }) => version)).toEqual([1, 2, 3, 4]);
  });

  test("is not touched by what was worked out for the one before", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const claimed = await claimAll();
    const stale = await unitOf("w", { facts: { size: 1 }, lease: { epoch: claimed.get("w")?.epoch ?? 0 } });
    await database.db.transaction((tx) =>
      applyVerb(tx, widgetStores, { ...widgetKey("w"), owner: "caller", name: "scrap", actor: "tester" }),
    );
    await placeWidgets(database.db, ["w"], "idle");
    await claimAll();
    expect(await commit(stale)).toEqual([{ type: "fenced" }]);
    expect((await widget("w")).facts).toEqual({});
  });

  test("made a second time by an effect stays as it is, or takes the unit with it that needs a new one", async () => {
    await placeWidgets(database.db, ["w", "child"], "idle");
    const again = make("child", { facts: { size: 9 } });
    await commit(await unitOf("w", { facts: { size: 1 }, effects: [again] }));
    expect(await widget("child")).toMatchObject({ version: 1, facts: {} });
    const mustBeNew = create(widgetLifecycle, "child", {}, { mustBeNew: true });
    const refused = commit(await unitOf("w", { facts: { size: 2 }, effects: [mustBeNew] }));
    await expect(refused).rejects.toThrow("widget child exists already");
    expect((await widget("w")).facts).toEqual({ size: 1 });
  });
});

test("two transactions over the same things in opposite order do not deadlock, and both are written", async () => {
  await placeWidgets(database.db, ["a", "b"], "idle");
  const change = (ids: string[]) =>
    database.db.transaction(async (tx) => {
      await lockThings(tx, ids.map(widgetKey));
      for (const id of ids) {
        const thing = await getWidget(tx, id);
        const facts = { size: ((thing.facts.size as number | undefined) ?? 20) + 1 };
        await commitUnits(tx, widgetStores, [{ kind: "widget", thing, facts, actor: "test" }]);
      }
    });
  await Promise.all(Array.from({ length: 20 }, (_, index) => change(index % 2 === 0 ? ["a", "b"] : ["b", "a"])));
  expect((await widget("a")).facts).toEqual({ size: 40 });
  expect((await widget("b")).facts).toEqual({ size: 40 });
});

test("a wake-up that comes with a unit of the same batch is kept by the release", async () => {
  await placeWidgets(database.db, ["a", "b"], "idle");
  const claimed = await claimAll();
  const committer = createCommitter({
    db: database.db,
    stores: widgetStores,
    most: 10,
    atOnce: 1,
    claimRecheck: seconds(30),
    onDue() {},
  });
  const [a, b] = [claimed.get("a"), claimed.get("b")];
  if (!a || !b) throw new Error("nothing was due");
  const release = { after: minutes(5), failures: 0, error: null };
  const effects: Effect[] = [wake(widgetLifecycle, "b")];
  await Promise.all([
    committer.submit({ claimed: a, unit: await unitOf("a", { effects, lease: { epoch: a.epoch } }), release }),
    committer.submit({ claimed: b, release: { ...release, after: milliseconds(600_000) } }),
  ]);
  expect(await isDue("b")).toBe(true);
});
