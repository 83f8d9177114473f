import { beforeEach, describe, expect, test } from "vitest";
import { follow } from "../../../src/kernel/decide.ts";
import { alert, create, type Effect, move, observe, request, wake } from "../../../src/kernel/effects.ts";
import type { JsonObject, Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { listHealthReports } from "../../../src/store/device/health-reports.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { commitOrRefuse } from "../../../src/store/lifecycle/commit/commit-or-refuse.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../../../src/store/lifecycle/commit/unit.ts";
import { applyVerb } from "../../../src/store/lifecycle/verbs.ts";
import type { Transaction } from "../../../src/store/postgres/database.ts";
import { wishFor } from "../../support/claims.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  createWidgetTable,
  getWidget,
  placeWidgets,
  requestWork,
  widgetKey,
  widgetLifecycle,
  widgetStores,
} from "../../support/widget.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(() => database.db.query("truncate claims, work, widgets, journal, health_reports"));
afterAll(() => database.drop());

const widget = (id: string) => getWidget(database.db, id);
const commit = (...units: Unit[]) => database.db.transaction((tx) => commitUnits(tx, widgetStores, units));
const unitOf = async (id: string, more: Partial<Unit> = {}): Promise<Unit> => ({
  kind: "widget",
  thing: await widget(id),
  actor: "test",
  ...more,
});
const moveOf = (thing: Thing, owner: "handler" | "caller", name: string) => {
  const found = follow(widgetLifecycle as unknown as Lifecycle<Thing>, thing, { owner, name });
  if (!found) throw new Error(`${thing.state.name} knows no ${name}`);
  return found;
};
const causing = (cause: Parameters<typeof move<typeof widgetLifecycle>>[2], message?: string): Effect =>
  move(widgetLifecycle, "other", cause, message === undefined ? {} : { message });

interface Event {
  version: number;
  type: string;
  from_state: string | null;
  to_state: string | null;
  reason: string | null;
  data: JsonObject;
}
const eventsOf = (id: string) =>
  database.db.query<Event>(
    `select version, type, from_state, to_state, reason, data from journal where id = $1 and type <> 'created'
      order by epoch, xid, seq`,
    [id],
  );
const pathOf = async (id: string) =>
  (await eventsOf(id)).map(
    ({ version, type, from_state, to_state }) => `${version} ${type} ${from_state} → ${to_state}`,
  );
const acquire = (id: string, holder: string) =>
  database.db.transaction((tx) => claims.acquire(tx, [wishFor(widgetKey(id), { kind: "run", id: holder }, "repave")]));
const release = (holder: string) =>
  database.db.transaction((tx) => claims.releaseAll(tx, [{ kind: "run", id: holder }]));

describe("what a caller asked for", () => {
  const ask = (...units: Unit[]) => database.db.transaction((tx) => commitOrRefuse(tx, widgetStores, units));

  test("is refused when another works on what it would move, and nothing of it is written", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await acquire("other", "run-1");
    const asked = ask(await unitOf("w", { facts: { size: 4 }, effects: [causing("employed")] }));
    await expect(asked).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining("widget other is being worked on by run run-1"),
    });
    expect(await widget("w")).toMatchObject({ facts: {}, outcome: null });
  });

  test("is refused when the thing changed since it was loaded, with all that was asked with it", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const [fresh, stale] = [await unitOf("w", { facts: { size: 4 } }), await unitOf("other", { facts: { size: 5 } })];
    await commit(stale);
    await expect(ask(fresh, stale)).rejects.toMatchObject({ kind: "conflict" });
    expect((await widget("w")).facts).toEqual({});
  });
});

describe("two rows of one thing in one commit", () => {
  test("are two events with a version each, in their order, and one state at the end", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const effects = [causing("kicked", "a kick"), causing("employed", "a job")];
    expect(await commit(await unitOf("w", { effects }))).toEqual([{ type: "committed" }]);
    expect(await widget("other")).toMatchObject({
      state: { name: "busy", cause: "a job" },
      version: 3,
      stateVersion: 3,
    });
    expect(await eventsOf("other")).toMatchObject([
      { version: 2, from_state: "idle", to_state: "kicked", reason: "a kick", data: { state_version: 2 } },
      { version: 3, from_state: "kicked", to_state: "busy", reason: "a job", data: { state_version: 3 } },
    ]);
  });

  test("take the claim of the last state alone", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await commit(await unitOf("w", { effects: [causing("kicked"), causing("employed")] }));
    expect(await claims.list(database.db, [widgetKey("other")])).toMatchObject([
      { holder: widgetKey("other"), reason: "busy" },
    ]);
    await database.db.query("truncate claims, widgets, journal");
    await placeWidgets(database.db, ["w", "other"], "idle");
    await commit(await unitOf("w", { effects: [causing("kicked"), causing("calmed")] }));
    expect(await claims.list(database.db, [widgetKey("other")])).toEqual([]);
  });

  test("see what the rows before them set", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const effects = [causing("kicked"), causing("pinched"), causing("pinched"), causing("calmed")];
    await commit(await unitOf("w", { effects }));
    expect(await widget("other")).toMatchObject({ state: { name: "idle" }, facts: { touches: 3 }, stateVersion: 3 });
    expect((await eventsOf("other")).map(({ version, data }) => [version, data.facts, data.was])).toEqual([
      [2, undefined, undefined],
      [3, { touches: 1 }, undefined],
      [4, { touches: 2 }, { touches: 1 }],
      [5, { touches: 3 }, { touches: 2 }],
    ]);
  });

  test("are refused as a whole when the second leads nowhere", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const unit = await unitOf("w", { facts: { size: 4 }, effects: [causing("kicked"), causing("kicked")] });
    await expect(commit(unit)).rejects.toThrow("widget other is kicked, where kicked leads nowhere");
    expect((await widget("w")).facts).toEqual({});
    expect(await pathOf("other")).toEqual([]);
  });

  test("pass over what is only to be tried, and was made impossible by the row before", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const effects = [causing("kicked"), move(widgetLifecycle, "other", "kicked", { ifPossible: true })];
    await commit(await unitOf("w", { effects }));
    expect(await pathOf("other")).toEqual(["2 transition idle → kicked"]);
  });

  test("may end with the thing gone, and its requests with it, each once", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await requestWork(database.db, ["other"]);
    await commit(await unitOf("w", { effects: [causing("kicked"), causing("scrapped")] }));
    await expect(widget("other")).rejects.toThrow("does not exist");
    expect(await pathOf("other")).toEqual([
      "2 requested null → null",
      "3 transition idle → kicked",
      "4 deleted kicked → null",
    ]);
    expect((await eventsOf("other"))[2]?.data.ended).toMatchObject([
      { outcome: "withdrawn", request: { job: "polish" } },
    ]);
  });

  test("may be the unit's own thing's, after what its handler reported", async () => {
    await placeWidgets(database.db, ["other"], "kicked");
    const unit = await unitOf("other");
    const effects = [causing("kicked", "again"), observe(widgetLifecycle, "other", { size: 2 })];
    await commit({ ...unit, move: moveOf(unit.thing, "handler", "settled"), facts: { size: 1 }, effects });
    expect(await widget("other")).toMatchObject({ state: { name: "kicked", cause: "again" }, facts: { size: 2 } });
    expect((await eventsOf("other")).map(({ to_state, data }) => [to_state, data.facts])).toEqual([
      ["idle", { size: 1 }],
      ["kicked", { size: 2 }],
    ]);
  });
});

describe("what was learnt about a thing that moves in the same commit", () => {
  test.each(["before", "after"])("and stands %s the move is told by the move's own event", async (where) => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const learnt = observe(widgetLifecycle, "other", { size: 4 });
    const effects = where === "before" ? [learnt, causing("kicked")] : [causing("kicked"), learnt];
    await commit(await unitOf("w", { effects }));
    expect(await widget("other")).toMatchObject({ state: { name: "kicked" }, facts: { size: 4 }, version: 2 });
    expect(await eventsOf("other")).toMatchObject([{ version: 2, to_state: "kicked", data: { facts: { size: 4 } } }]);
  });

  test("and contradicts what the row sets has an event of its own, and wins", async () => {
    await placeWidgets(database.db, ["w", "other"], "kicked");
    const effects = [causing("calmed"), observe(widgetLifecycle, "other", { touches: 9 })];
    await commit(await unitOf("w", { effects }));
    expect(await widget("other")).toMatchObject({ facts: { touches: 9 }, version: 3 });
    expect(await pathOf("other")).toEqual(["2 transition kicked → idle", "3 facts_changed null → null"]);
  });
});

describe("a row that stays", () => {
  test("and changes what the state carries restarts the state", async () => {
    await placeWidgets(database.db, ["w", "other"], "kicked");
    const before = await widget("other");
    await commit(await unitOf("w", { effects: [causing("shaken", "hard")] }));
    const shaken = await widget("other");
    expect(shaken).toMatchObject({ state: { name: "kicked", cause: "hard" }, stateVersion: 2 });
    expect(shaken.stateSince.getTime()).toBeGreaterThan(before.stateSince.getTime());
    expect(await eventsOf("other")).toMatchObject([{ data: { state_version: 2, state: { cause: "hard" } } }]);
  });

  test("and carries what it carried, or changes facts alone, does not", async () => {
    await placeWidgets(database.db, ["w", "other"], "kicked");
    await commit(await unitOf("w", { effects: [causing("shaken", "hard")] }));
    const before = await widget("other");
    await commit(await unitOf("w", { effects: [causing("shaken", "hard"), causing("pinched")] }));
    expect(await widget("other")).toMatchObject({
      stateVersion: 2,
      stateSince: before.stateSince,
      version: before.version + 2,
      state: { name: "kicked", cause: "hard" },
      facts: { touches: 1 },
    });
  });
});

describe("an effect on a thing that somebody else works on", () => {
  test("makes its unit wait: nothing is written of it but for whom it waits", async () => {
    await placeWidgets(database.db, ["w", "other", "third"], "idle");
    await acquire("other", "r1");
    const effects = [
      causing("employed"),
      move(widgetLifecycle, "third", "kicked"),
      create(widgetLifecycle, "child", {}),
    ];
    const unit = await unitOf("w", { facts: { size: 1 }, effects });
    expect(await commit(unit)).toMatchObject([
      { type: "waiting", moving: widgetKey("other"), for: { inTheWay: [{ holder: { kind: "run", id: "r1" } }] } },
    ]);
    expect(await widget("w")).toMatchObject({
      facts: {},
      outcome: { type: "waiting", reason: "waiting for run r1 (repave), which works on widget other" },
    });
    for (const id of ["other", "third"]) expect((await widget(id)).version).toBe(1);
    await expect(widget("child")).rejects.toThrow("does not exist");
    expect(await claims.list(database.db, [widgetKey("other")])).toHaveLength(1);
  });

  test("is carried out once that one has gone, and before that says nothing new", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await acquire("other", "r1");
    const effects = [causing("employed")];
    await commit(await unitOf("w", { effects }));
    await commit(await unitOf("w", { effects }));
    expect(await pathOf("w")).toEqual(["2 waiting null → null"]);
    await release("r1");
    expect(await commit(await unitOf("w", { effects, outcome: null }))).toEqual([{ type: "committed" }]);
    expect((await widget("other")).state.name).toBe("busy");
    expect(await widget("w")).toMatchObject({ outcome: null });
  });

  test("does not keep a claim of its own while it waits", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await acquire("other", "r1");
    await requestWork(database.db, ["w"]);
    const unit = await unitOf("w");
    const toBusy = { ...moveOf(unit.thing, "handler", "settled"), to: "busy" };
    expect(await commit({ ...unit, move: toBusy, effects: [causing("employed")] })).toMatchObject([
      { type: "waiting" },
    ]);
    expect(await claims.list(database.db, [widgetKey("w")])).toEqual([]);
    expect((await widget("w")).state.name).toBe("idle");
  });

  test("that cannot be as long as another works on the unit's own thing does not fail it: the unit waits in line", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await acquire("w", "r1");
    const unit = await unitOf("w");
    const toBusy = { ...moveOf(unit.thing, "handler", "settled"), to: "busy" };
    const asked = { ...unit, move: toBusy, effects: [causing("kicked"), causing("kicked")] };
    expect(await commit(asked)).toMatchObject([{ type: "waiting", for: { inTheWay: [{ holder: { id: "r1" } }] } }]);
    expect(await claims.list(database.db, [widgetKey("w")])).toHaveLength(2);
    await release("r1");
    const again = { ...asked, thing: await widget("w") };
    await expect(commit(again)).rejects.toThrow("where kicked leads nowhere");
  });

  test("waits behind those who wait for it already", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await acquire("other", "r1");
    await acquire("other", "r2");
    await release("r1");
    expect(await commit(await unitOf("w", { effects: [causing("employed")] }))).toMatchObject([
      { for: { inTheWay: [{ holder: { id: "r2" } }] } },
    ]);
  });

  test("needs no claim where its own unit's thing holds it", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await database.db.transaction((tx) => claims.acquire(tx, [wishFor(widgetKey("other"), widgetKey("w"), "care")]));
    expect(await commit(await unitOf("w", { effects: [causing("employed")] }))).toEqual([{ type: "committed" }]);
    expect(await claims.list(database.db, [widgetKey("other")])).toMatchObject([{ holder: widgetKey("w") }]);
  });

  test("is refused to a caller, who does not wait", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await acquire("other", "r1");
    const refused = database.db.transaction((tx) =>
      applyVerb(tx, widgetStores, {
        ...widgetKey("w"),
        owner: "caller",
        name: "touch",
        actor: "tester",
        effects: [causing("employed")],
      }),
    );
    await expect(refused).rejects.toMatchObject({
      kind: "failed_precondition",
      message: "widget other is being worked on by run r1",
    });
    expect((await widget("w")).version).toBe(1);
  });
});

describe("a request by an effect", () => {
  const ask = (id: string, job: string) => request(widgetLifecycle, id, "workRequest", { job });
  const requestsOf = async (id: string) => {
    const [row] = await database.db.query<{ pending: JsonObject | null; last: JsonObject | null }>(
      "select work_requested as pending, last_work_request as last from widgets where id = $1",
      [id],
    );
    return row;
  };

  test("is pending on the other thing, which gets a pass, and names who asked so that no caller can imitate it", async () => {
    await placeWidgets(database.db, ["rack-1", "w", "other"], "idle");
    await database.db.query("update work set wake_at = 'infinity'");
    await commit(await unitOf("w", { facts: { size: 1 }, effects: [ask("other", "polish")] }));
    expect((await requestsOf("other"))?.pending).toMatchObject({
      id: expect.any(String),
      job: "polish",
      initiator: "widget-w",
      origin: widgetKey("w"),
      requested_at: expect.any(String),
    });
    expect(await eventsOf("other")).toMatchObject([
      { version: 2, type: "requested", data: { job: "polish", origin: widgetKey("w") } },
    ]);
    expect(await database.db.query("select id from work where wake_at <= now()")).toEqual([{ id: "other" }]);

    await requestWork(database.db, ["other"], { job: "rub", initiator: "widget-w", origin: widgetKey("w") });
    const byCaller = (await requestsOf("other"))?.pending;
    expect(byCaller).toMatchObject({ job: "rub", initiator: "tester" });
    expect(byCaller).not.toHaveProperty("origin");
  });

  test("supersedes one that still waits, and waits behind one that is being carried out", async () => {
    await placeWidgets(database.db, ["w", "other", "busy"], "idle");
    const earlier = await requestWork(database.db, ["other", "busy"], { job: "wash" });
    await database.db.query(
      `update widgets set state = 'busy', state_data = jsonb_build_object('request', work_requested) where id = 'busy'`,
    );
    await commit(await unitOf("w", { effects: [ask("other", "polish"), ask("busy", "polish")] }));
    expect(await requestsOf("other")).toMatchObject({
      pending: { job: "polish" },
      last: { id: earlier, outcome: "superseded", message: "superseded by a request of widget-w" },
    });
    expect(await pathOf("other")).toEqual([
      "2 requested null → null",
      "3 request_ended null → null",
      "4 requested null → null",
    ]);
    expect(await requestsOf("busy")).toMatchObject({ pending: { job: "polish" }, last: null });
  });

  test("comes after what the same unit does to the thing", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await commit(await unitOf("w", { effects: [ask("other", "polish"), causing("kicked"), causing("calmed")] }));
    expect(await pathOf("other")).toEqual([
      "2 transition idle → kicked",
      "3 transition kicked → idle",
      "4 requested null → null",
    ]);
  });

  test("takes its unit with it when there is no such thing", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const unit = await unitOf("w", { facts: { size: 1 }, effects: [ask("nobody", "polish")] });
    await expect(commit(unit)).rejects.toThrow("widget nobody does not exist, so nothing can be asked of it");
    expect((await widget("w")).facts).toEqual({});
  });
});

describe("a health alert by an effect", () => {
  const named = { source: "rack", id: "FanFailed" } as const;
  const open = (message: string) =>
    alert(widgetLifecycle, "other", { ...named, message, classifications: ["Hardware"] });
  const reportsOf = async (id: string) => (await listHealthReports(database.db, "widget", [id])).get(id) ?? [];

  test("is open on the other thing with what it says, and told", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await commit(await unitOf("w", { facts: { size: 1 }, effects: [open("fan 3 stands still")] }));
    expect(await reportsOf("other")).toMatchObject([
      {
        mode: "merge",
        report: {
          source: "rack",
          alerts: [{ id: "FanFailed", target: null, message: "fan 3 stands still", classifications: ["Hardware"] }],
        },
      },
    ]);
    expect(await eventsOf("other")).toMatchObject([
      { version: 2, type: "health_report_changed", data: { source: "rack", alerts: ["FanFailed"] } },
    ]);
  });

  test("stays open since when it was, beside others of its source, and says nothing new when nothing is", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    await commit(await unitOf("w", { effects: [open("fan 3 stands still")] }));
    const since = (await reportsOf("other"))[0]?.report.alerts[0]?.inAlertSince;
    await commit(await unitOf("w", { effects: [open("fan 3 stands still")] }));
    expect(await eventsOf("other")).toHaveLength(1);
    const hot = alert(widgetLifecycle, "other", { source: "rack", id: "TooHot", target: "inlet", message: "41 °C" });
    await commit(await unitOf("w", { effects: [open("fans 3 and 4 stand still"), hot] }));
    expect((await reportsOf("other"))[0]?.report.alerts).toMatchObject([
      { id: "FanFailed", message: "fans 3 and 4 stand still", inAlertSince: since },
      { id: "TooHot", target: "inlet" },
    ]);
  });

  test("ends alone, and the report with the last of its alerts", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const hot = { source: "rack", id: "TooHot" };
    await commit(
      await unitOf("w", { effects: [open("still"), alert(widgetLifecycle, "other", { ...hot, message: "41 °C" })] }),
    );
    await commit(await unitOf("w", { effects: [alert(widgetLifecycle, "other", { ...named, ended: true })] }));
    expect((await reportsOf("other"))[0]?.report.alerts.map(({ id }) => id)).toEqual(["TooHot"]);
    await commit(await unitOf("w", { effects: [alert(widgetLifecycle, "other", { ...hot, ended: true })] }));
    expect(await reportsOf("other")).toEqual([]);
    await commit(await unitOf("w", { effects: [alert(widgetLifecycle, "other", { ...hot, ended: true })] }));
    expect(await eventsOf("other")).toHaveLength(3);
  });

  test("takes its unit with it when there is no such thing, and comes with nothing of a unit that is dropped", async () => {
    await placeWidgets(database.db, ["w", "other"], "idle");
    const nowhere = alert(widgetLifecycle, "nobody", { ...named, message: "still" });
    const unit = await unitOf("w", { facts: { size: 1 }, effects: [nowhere] });
    await expect(commit(unit)).rejects.toThrow("widget nobody does not exist, so it can have no alert");
    const stale = await unitOf("w", { facts: { size: 2 }, effects: [open("still")] });
    await commit(await unitOf("w", { facts: { size: 3 } }));
    expect(await commit(stale)).toEqual([{ type: "conflict" }]);
    expect(await reportsOf("other")).toEqual([]);
  });
});

describe("statements", () => {
  /** How many a commit takes. */
  async function count(units: readonly Unit[]): Promise<number> {
    let statements = 0;
    await database.db.transaction(async (tx) => {
      const counting = new Proxy(tx, {
        get(target, name: keyof Transaction) {
          const value = target[name];
          if (name !== "query" && name !== "execute") return typeof value === "function" ? value.bind(target) : value;
          return (...given: unknown[]) => {
            statements += 1;
            return (value as (...all: unknown[]) => unknown).apply(target, given);
          };
        },
      });
      expect(await commitUnits(counting, widgetStores, units)).toEqual(units.map(() => ({ type: "committed" })));
    });
    return statements;
  }

  const each = (ids: readonly string[], effectsOf: (id: string) => Effect[]) =>
    Promise.all(ids.map((id) => unitOf(id, { facts: { label: id }, effects: effectsOf(id) })));
  const many = Array.from({ length: 20 }, (_, index) => `w${index}`);

  test("are as many for units that wake the same thing as for one of them", async () => {
    await placeWidgets(database.db, [...many, "one", "hub"], "idle");
    const one = await count(await each(["one"], () => [wake(widgetLifecycle, "hub")]));
    expect(await count(await each(many, () => [wake(widgetLifecycle, "hub")]))).toBe(one);
    expect(await database.db.query("select 1 from work where id = 'hub' and wake_at <= now()")).toHaveLength(1);
  });

  test("are as many for units that each make a thing as for one of them", async () => {
    await placeWidgets(database.db, [...many, "one"], "idle");
    const child = (id: string) => [create(widgetLifecycle, `child of ${id}`, { facts: { size: 2 } })];
    const one = await count(await each(["one"], child));
    expect(await count(await each(many, child))).toBe(one);
    expect(await widget("child of w19")).toMatchObject({ state: { name: "fresh" }, facts: { size: 2 } });
    expect(await database.db.query("select 1 from work where id like 'child of %'")).toHaveLength(21);
  });

  test("are as many for units that each ask another as for one of them", async () => {
    await placeWidgets(database.db, [...many, "one", ...many.map((id) => `to ${id}`), "to one"], "idle");
    const ask = (id: string) => [request(widgetLifecycle, `to ${id}`, "workRequest", { job: id })];
    const one = await count(await each(["one"], ask));
    expect(await count(await each(many, ask))).toBe(one);
    expect(await widget("to w7")).toMatchObject({ workRequest: { job: "w7", origin: widgetKey("w7") } });
  });

  test("are no more for a thing with two rows than for one with one", async () => {
    await placeWidgets(database.db, ["w", "v", "other"], "idle");
    const one = await count([await unitOf("w", { effects: [causing("kicked")] })]);
    await database.db.query("update widgets set state = 'idle' where id = 'other'");
    expect(await count([await unitOf("v", { effects: [causing("kicked"), causing("calmed")] })])).toBe(one);
  });
});
