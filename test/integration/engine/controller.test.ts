import { setImmediate as turn } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { IDLE_POLL } from "../../../src/engine/controller.ts";
import { create } from "../../../src/kernel/effects.ts";
import { AppError, StepFailure } from "../../../src/kernel/errors.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { happened, nothingToDo, type Outcome, waitFor } from "../../../src/kernel/outcome.ts";
import type { Clock } from "../../../src/kernel/time/clock.ts";
import { hours, milliseconds, minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { countStates } from "../../../src/store/lifecycle/measurements.ts";
import { collectThingStores, type ThingStore } from "../../../src/store/lifecycle/things.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { final, forPerson, retryable } from "../../support/failures.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  addWidgets,
  createWidgetTable,
  getWidget,
  placeWidgets,
  requestWork,
  widgetKey,
  widgetLifecycle,
  widgetStore,
} from "../../support/widget.ts";
import { startWidgetEngine, type WidgetEngine } from "../../support/widget-engine.ts";

let database: TestDatabase;
let engines: WidgetEngine[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(() => database.db.query("truncate claims, work, widgets, journal"));
afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.stop()));
  engines = [];
});
afterAll(() => database.drop());

const start: (...rest: Tail<Parameters<typeof startWidgetEngine>>) => Promise<WidgetEngine> = async (...rest) => {
  const engine = await startWidgetEngine(database.db, ...rest);
  engines.push(engine);
  return engine;
};
type Tail<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

const widget = (id: string) => getWidget(database.db, id);
const eventually = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 30_000, interval: 10 });
const nowIn = (id: string, name: string) => eventually(async () => expect((await widget(id)).state.name).toBe(name));
const workOf = async (id: string) =>
  (
    await database.db.query<{ failures: number; last_error: string | null; leased: boolean; wait: number }>(
      `select failures, last_error, lease_until is not null as leased,
              extract(epoch from nullif(wake_at, 'infinity') - now())::float8 as wait from work where id = $1`,
      [id],
    )
  )[0];
const typesOf = async (id: string) =>
  (
    await database.db.query<{ type: string }>(
      "select type from journal where id = $1 and type <> 'created' order by epoch, xid, seq",
      [id],
    )
  ).map(({ type }) => type);
const wake = (...ids: string[]) =>
  database.db.transaction(async (tx) => {
    await work.wake(tx, ids.map(widgetKey));
    await tx.query("select pg_notify('millwright', '')");
  });
const age = (id: string, by: string) =>
  database.db.query(`update widgets set state_since = now() - $2::interval where id = $1`, [id, by]);
/** Controllers that have nothing to do look again after a second. Here they do only when somebody tells them to. */
function letNobodyPoll(): void {
  const { setTimeout: after } = globalThis;
  const patient = (work: () => void, ms?: number) => after(work, ms === IDLE_POLL ? hours(1) : ms);
  const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(patient as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
}
const names = (count: number, prefix = "w") => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

describe("trouble with one thing", () => {
  test("a handler that always throws is shown on its thing, tried ever more rarely, and holds up nobody", async () => {
    const ids = names(30);
    await placeWidgets(database.db, ids, "kicked");
    await start({
      kicked: async ({ id }) => {
        if (id === "w13") throw new TypeError("cannot read properties of undefined");
        return happened("settled");
      },
    });
    await Promise.all(ids.filter((id) => id !== "w13").map((id) => nowIn(id, "idle")));
    await eventually(async () => expect((await workOf("w13"))?.failures).toBeGreaterThanOrEqual(2));
    const reason = "unexpected error: cannot read properties of undefined";
    expect(await widget("w13")).toMatchObject({ state: { name: "kicked" }, outcome: { type: "failing", reason } });
    expect(await workOf("w13")).toMatchObject({ last_error: reason });
    expect(await typesOf("w13")).toEqual(["failing"]);
  });

  test("trouble is logged when it begins and when it is over, however often the thing is checked", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const lines: string[] = [];
    const at = (level: string) => (fields: object, message: string) => {
      if ("kind" in fields) lines.push(`${level} ${message}${"reason" in fields ? `: ${fields.reason}` : ""}`);
    };
    const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
    let broken = true;
    await start(
      {
        kicked: async () => {
          if (broken) throw retryable("no answer");
          return happened("settled");
        },
      },
      { log },
    );
    await eventually(async () => expect((await workOf("w"))?.failures).toBeGreaterThanOrEqual(2));
    expect(lines).toEqual(["warn failing: no answer"]);
    broken = false;
    await wake("w");
    await nowIn("w", "idle");
    await eventually(async () => expect(lines).toEqual(["warn failing: no answer", "info recovered", "debug moved"]));
  });

  test("a row that cannot be read is set aside and shown; its neighbours go on, and so does it once it is repaired", async () => {
    const ids = names(20);
    await placeWidgets(database.db, ids, "kicked");
    await database.db.query(`update widgets set facts = '{"size":"big"}' where id = 'w5'`);
    const engine = await start({ kicked: async () => happened("settled") });
    await Promise.all(ids.filter((id) => id !== "w5").map((id) => nowIn(id, "idle")));
    // It is tried again after a second: on a slow computer that may have been so before anybody looks.
    await eventually(async () => expect((await workOf("w5"))?.failures).toBeGreaterThanOrEqual(1));
    expect(await workOf("w5")).toMatchObject({ last_error: `its row cannot be read: facts.size: "big" is no number` });
    expect([...engine.quarantined.keys()]).toEqual(["w5"]);
    await database.db.query(`update widgets set facts = '{}' where id = 'w5'`);
    await wake("w5");
    await nowIn("w5", "idle");
    await eventually(async () => expect(await workOf("w5")).toMatchObject({ failures: 0, last_error: null }));
  });

  test("a row that makes the whole query fail is found among its neighbours", async () => {
    const ids = names(40);
    await placeWidgets(database.db, ids, "kicked");
    const load: typeof widgetStore.load = async (db, asked) => {
      if (asked.includes("w31")) throw new Error("invalid input syntax");
      return widgetStore.load(db, asked);
    };
    const stores = collectThingStores([{ ...widgetStore, load } as typeof widgetStore]);
    await start({ kicked: async () => happened("settled") }, { stores });
    await Promise.all(ids.filter((id) => id !== "w31").map((id) => nowIn(id, "idle")));
    await eventually(async () =>
      expect(await workOf("w31")).toMatchObject({ last_error: "its row cannot be read: invalid input syntax" }),
    );
  });

  test("a state that its lifecycle does not know is left to a server of a later version, and shown", async () => {
    await placeWidgets(database.db, ["w", "fine"], "kicked");
    await database.db.query("update widgets set state = 'limbo' where id = 'w'");
    const before = await widget("w");
    await start({ kicked: async () => happened("settled") });
    await nowIn("fine", "idle");
    await eventually(async () =>
      expect(await workOf("w")).toMatchObject({
        last_error: "this server does not know the state limbo",
        failures: 0,
        leased: false,
      }),
    );
    expect(await widget("w")).toEqual(before);
  });

  test("an outcome that can never be written is set aside and shown, and its neighbours are written", async () => {
    const ids = names(20);
    await placeWidgets(database.db, ids, "kicked");
    const engine = await start({
      kicked: async ({ id }) => happened("settled", { facts: { size: id === "w3" ? 13 : 1 } }),
    });
    await Promise.all(ids.filter((id) => id !== "w3").map((id) => nowIn(id, "idle")));
    await eventually(async () => expect((await workOf("w3"))?.last_error).toContain("widgets_facts_check"));
    expect(await widget("w3")).toMatchObject({ version: 1, state: { name: "kicked" } });
    expect(engine.quarantined.get("w3")).toContain("its outcome cannot be written");
  });

  test("an event that the table does not know is a bug, and is shown as one", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    await start({ kicked: async () => happened("exploded") });
    await eventually(async () =>
      expect((await widget("w")).outcome?.reason).toBe(
        "unexpected error: the handler of kicked reported exploded, which the table does not know",
      ),
    );
  });
});

describe("failures of work", () => {
  const failing = (failure: () => Error) => ({
    busy: async (): Promise<Outcome> => {
      throw failure();
    },
  });

  test("that may pass are retried, and the thing says what failed until it recovers", async () => {
    await placeWidgets(database.db, ["w"], "busy");
    let answers = false;
    await start({
      busy: async () => {
        if (!answers) throw retryable("the BMC does not answer");
        return waitFor("warming up", minutes(1));
      },
    });
    await eventually(async () =>
      expect((await widget("w")).outcome).toMatchObject({ type: "failing", reason: "the BMC does not answer" }),
    );
    answers = true;
    await eventually(async () =>
      expect((await widget("w")).outcome).toMatchObject({ type: "waiting", reason: "warming up" }),
    );
    expect(await workOf("w")).toMatchObject({ failures: 0, last_error: null });
    expect(await typesOf("w")).toEqual(["failing", "waiting"]);
  });

  test("a device that asks to be left alone is, but not beyond the deadline, and never for years", async () => {
    await placeWidgets(database.db, ["busy"], "busy");
    await placeWidgets(database.db, ["kicked"], "kicked");
    const leaveMe = async () => {
      throw new StepFailure("script_failed", "come back later", { retryAfterMs: hours(24 * 365) });
    };
    await start({ busy: leaveMe, kicked: leaveMe });
    await eventually(async () => expect((await workOf("busy"))?.failures).toBe(1));
    await eventually(async () => expect((await workOf("kicked"))?.failures).toBe(1));
    expect((await workOf("busy"))?.wait).toBeGreaterThan(200);
    expect((await workOf("busy"))?.wait).toBeLessThan(241);
    expect((await workOf("kicked"))?.wait).toBeGreaterThan(800);
    expect((await workOf("kicked"))?.wait).toBeLessThan(901);
  });

  test("that are final lead along the failure row, with the cause", async () => {
    await placeWidgets(database.db, ["w"], "busy");
    const engine = await start(failing(() => final("wrong credentials")));
    await nowIn("w", "broken");
    await eventually(async () => expect(engine.failures).toEqual(["busy invalid_input"]));
    expect(await widget("w")).toMatchObject({ state: { cause: "wrong credentials" }, outcome: null });
  });

  test("that are final in a state without a failure row are retried and shown", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const engine = await start({
      kicked: async () => {
        throw final("wrong credentials");
      },
    });
    await eventually(async () => expect((await workOf("w"))?.failures).toBeGreaterThanOrEqual(1));
    await eventually(async () => expect(engine.failures[0]).toBe("kicked invalid_input"));
    expect(await widget("w")).toMatchObject({ state: { name: "kicked" }, outcome: { type: "failing" } });
  });

  test("that need a person leave the thing where it is, and say so", async () => {
    await placeWidgets(database.db, ["w"], "busy");
    await start(failing(() => forPerson("replace the fuse")));
    await eventually(async () =>
      expect((await widget("w")).outcome).toMatchObject({ type: "needs_intervention", reason: "replace the fuse" }),
    );
    expect((await workOf("w"))?.wait).toBeGreaterThan(200);
    expect((await widget("w")).state.name).toBe("busy");
  });

  test("end at the deadline, with what was last seen as the cause", async () => {
    await placeWidgets(database.db, ["failing", "waiting"], "busy");
    for (const id of ["failing", "waiting"]) await age(id, "241 seconds");
    await start({
      busy: async ({ id }) => {
        if (id === "failing") throw retryable("no answer");
        return waitFor("still off", seconds(1));
      },
    });
    await nowIn("failing", "broken");
    await nowIn("waiting", "broken");
    expect((await widget("failing")).state.cause).toBe("not done within 4m: no answer");
    expect((await widget("waiting")).state.cause).toBe("not done within 4m: still off");
  });

  test("a thing that has been at work for longer than its SLA is counted as late", async () => {
    await placeWidgets(database.db, ["w", "x"], "kicked");
    await age("w", "6 minutes");
    const counts = await countStates(database.db, widgetStore as unknown as ThingStore);
    expect(counts.find(({ state }) => state === "kicked")).toEqual({
      state: "kicked",
      things: 2,
      aboveSla: 1,
    });
  });
});

describe("work gets a pass", () => {
  test("without waiting for the next poll when a request is recorded", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    letNobodyPoll();
    await start({ busy: async () => happened("finished") });
    for (let round = 0; round < 6; round += 1) {
      await eventually(async () => expect(await workOf("w")).toMatchObject({ leased: false, wait: null }));
      await requestWork(database.db, ["w"]);
      await eventually(async () => expect((await widget("w")).workRequest).toBeNull());
    }
  });

  test("by polling when no message comes", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    await start({ busy: async () => happened("finished") }, { deaf: true });
    await eventually(async () => expect(await workOf("w")).toMatchObject({ leased: false }));
    await requestWork(database.db, ["w"]);
    await eventually(async () => expect((await widget("w")).workRequest).toBeNull());
  });

  test("once more, and only once, when it is woken while it is being handled", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const entered = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const engine = await start({
      kicked: async () => {
        entered.resolve();
        await gate.promise;
        return nothingToDo(null);
      },
    });
    await entered.promise;
    await wake("w");
    await wake("w");
    gate.resolve();
    await eventually(async () => expect(engine.handled).toHaveLength(2));
    await eventually(async () => expect(await workOf("w")).toMatchObject({ leased: false, wait: null }));
    expect(engine.handled).toHaveLength(2);
  });

  test("again when it said so, and nothing is written while nothing changes", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const engine = await start({ idle: async () => nothingToDo(milliseconds(20), { facts: { size: 1 } }) });
    await eventually(async () => expect(engine.handled.length).toBeGreaterThan(5));
    expect((await widget("w")).version).toBe(2);
    expect(await typesOf("w")).toEqual(["facts_changed"]);
  });

  test("no more than ten transitions at a stretch, then others have their turn", async () => {
    await addWidgets(database.db, ["spinner"], { facts: { turns: 25 } });
    await database.db.query("update widgets set state = 'ring_a' where id = 'spinner'");
    await addWidgets(database.db, ["other"]);
    await start({}, { inFlight: 1 });
    await nowIn("spinner", "idle");
    await nowIn("other", "idle");
    const order = await database.db.query<{ id: string }>(
      "select id from journal where type = 'transition' order by epoch, xid, seq",
    );
    expect(order).toHaveLength(27);
    expect(order.findIndex(({ id }) => id === "other")).toBe(10);
  });

  test("until it is gone, and then never again", async () => {
    await placeWidgets(database.db, ["w"], "leaving");
    await start({ leaving: async () => happened("left") });
    await eventually(async () => expect(await database.db.query("select 1 from widgets")).toEqual([]));
    expect(await workOf("w")).toBeUndefined();
    await wake("w", "never-was");
    await eventually(async () => expect(await database.db.query("select 1 from work")).toEqual([]));
  });
});

describe("devices that hang", () => {
  test("keep no other thing waiting, though more of them hang than may be checked at a time", async () => {
    const hanging = names(8, "hanging");
    const others = names(40, "other");
    await placeWidgets(database.db, [...hanging, ...others], "kicked");
    const over = Promise.withResolvers<void>();
    const { handled } = await start(
      {
        kicked: async ({ id }) => {
          if (id.startsWith("hanging")) await over.promise;
          return happened("settled");
        },
      },
      { inFlight: 4 },
    );
    await Promise.all(others.map((id) => nowIn(id, "idle")));
    const stillHanging = await Promise.all(hanging.map(async (id) => (await widget(id)).state.name));
    expect(stillHanging).toEqual(hanging.map(() => "kicked"));
    over.resolve();
    await Promise.all(hanging.map((id) => nowIn(id, "idle")));
    // Nobody was looked at twice for it.
    expect(new Set(handled).size).toBe(handled.length);
  });

  test("are waited for only so many at a time", async () => {
    const hanging = names(20, "hanging");
    await placeWidgets(database.db, hanging, "kicked");
    const over = Promise.withResolvers<void>();
    let most = 0;
    let now = 0;
    await start(
      {
        kicked: async () => {
          now += 1;
          most = Math.max(most, now);
          await over.promise;
          now -= 1;
          return happened("settled");
        },
      },
      { inFlight: 2 },
    );
    await eventually(async () => expect(now).toBe(10));
    over.resolve();
    await Promise.all(hanging.map((id) => nowIn(id, "idle")));
    expect(most).toBeLessThanOrEqual(10);
  });
});

describe("several controllers", { tags: "race" }, () => {
  test("share the work, and never handle one thing at the same time", async () => {
    const ids = names(60);
    await placeWidgets(database.db, ids, "kicked");
    const inside = new Set<string>();
    const overlaps: string[] = [];
    const handle = (limit: number) => {
      const seen = new Map<string, number>();
      return async ({ id }: { id: string }) => {
        if (inside.has(id)) overlaps.push(id);
        inside.add(id);
        for (let turns = 0; turns < 3; turns += 1) await turn();
        inside.delete(id);
        const count = (seen.get(id) ?? 0) + 1;
        seen.set(id, count);
        return count >= limit ? happened("settled") : waitFor(`seen ${count} times`, milliseconds(1));
      };
    };
    const engines = [];
    for (const owner of ["a", "b", "c"]) engines.push(await start({ kicked: handle(8) }, { owner, inFlight: 20 }));
    let waking = true;
    const waker = (async () => {
      while (waking) await wake(...ids.slice(0, 20));
    })();
    await eventually(async () =>
      expect(await database.db.query("select 1 from widgets where state = 'kicked'")).toEqual([]),
    );
    waking = false;
    await waker;
    expect(overlaps).toEqual([]);
    for (const engine of engines) expect(engine.handled.length).toBeGreaterThan(0);
  });

  test("take over at once what one of them hands over when it is stopped", async () => {
    const ids = names(5);
    await placeWidgets(database.db, ids, "kicked");
    const stopped: string[] = [];
    const first = await start({
      kicked: ({ id }, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            stopped.push(id);
            reject(signal.reason);
          });
        }),
    });
    await eventually(async () => expect(first.handled).toHaveLength(5));
    letNobodyPoll();
    const second = await start({ kicked: async () => happened("settled") });
    await first.stop();
    await Promise.all(ids.map((id) => nowIn(id, "idle"))); // long before the leases would have ended
    expect(stopped.sort()).toEqual(ids);
    expect(second.handled).toHaveLength(5);
    expect(await typesOf("w0")).toEqual(["transition"]);
  });

  test("work again after they were stopped, and cut nothing short for having been", async () => {
    await placeWidgets(database.db, ["w0"], "kicked");
    let calls = 0;
    const { controller, handled, stop } = await start({
      kicked: async (_, { signal }) => {
        calls += 1;
        if (calls === 1)
          await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        return happened("settled");
      },
    });
    await eventually(async () => expect(handled).toHaveLength(1));
    await stop(); // the pass hangs, and is cut off
    const stopping = new AbortController();
    const running = controller.run(stopping.signal);
    await nowIn("w0", "idle");
    stopping.abort();
    await running;
    expect(handled).toHaveLength(2);
  });

  test("go on in the middle of a chain of transitions that a stopped one began", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const gate = Promise.withResolvers<void>();
    const first = await start({
      kicked: async () => {
        await gate.promise;
        return happened("settled", { facts: { size: 5 } });
      },
      idle: async () => nothingToDo(null),
    });
    await eventually(async () => expect(first.handled).toHaveLength(1));
    const stopping = first.stop();
    gate.resolve();
    await stopping;
    expect(await widget("w")).toMatchObject({ state: { name: "idle" }, facts: { size: 5 } });
    expect(first.handled).toEqual(["w kicked"]);
    expect(await workOf("w")).toMatchObject({ leased: false });
    const second = await start({ idle: async () => nothingToDo(null) });
    await eventually(async () => expect(second.handled).toEqual(["w idle"]));
  });

  test("leave to one that is stopped what it has announced: it makes that one pass more, and no other", async () => {
    await placeWidgets(database.db, ["w"], "idle");
    const gate = Promise.withResolvers<void>();
    const first = await start({
      idle: async () => {
        await gate.promise;
        return happened("settled"); // stays where it is: whoever said so knows what comes next
      },
    });
    await eventually(async () => expect(first.handled).toHaveLength(1));
    const stopping = first.stop();
    gate.resolve();
    await stopping;
    expect(first.handled).toEqual(["w idle", "w idle"]);
    expect(await workOf("w")).toMatchObject({ leased: false });
  });
});

describe("a lease that is lost", () => {
  test("keeps its former owner from writing anything", async () => {
    await placeWidgets(database.db, ["w", "other"], "kicked");
    const entered = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const engine = await start({
      kicked: async ({ id }) => {
        if (id === "other") return nothingToDo(null);
        entered.resolve();
        await gate.promise;
        return happened("settled", {
          facts: { size: 5 },
          effects: [create(widgetLifecycle, "child", {})],
        });
      },
    });
    await entered.promise;
    await database.db.query(
      "update work set epoch = epoch + 1, lease_owner = 'thief', lease_until = now() + interval '1 min', wake_at = now() + interval '1 min' where id = 'w'",
    );
    gate.resolve();
    await eventually(async () => expect(engine.leasesLost).toEqual(["widget"]));
    expect(await widget("w")).toMatchObject({ version: 1, state: { name: "kicked" }, facts: {} });
    await expect(widget("child")).rejects.toThrow("does not exist");
    const [row] = await database.db.query("select lease_owner from work where id = 'w'");
    expect(row).toEqual({ lease_owner: "thief" });
  });

  test("keeps its former owner from touching a device, from the moment that it is over on the owner's own clock", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    let jumped = 0;
    const clock: Clock = { now: () => new Date(), monotonic: () => performance.now() + jumped };
    const calls: string[] = [];
    let looks = 0;
    await start(
      {
        kicked: async (_, call) => {
          looks += 1;
          call.mayTouchDevice(seconds(5));
          calls.push(`look ${looks}: before`);
          if (looks === 1) jumped += minutes(10);
          call.mayTouchDevice(seconds(5));
          calls.push(`look ${looks}: after`);
          return happened("settled");
        },
      },
      { clock },
    );
    await nowIn("w", "idle");
    expect(calls).toEqual(["look 1: before", "look 2: before", "look 2: after"]);
    expect(await typesOf("w")).toEqual(["transition"]);
  });

  test("is not lost by a pass that takes long: it is renewed meanwhile", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    let jumped = 0;
    const clock: Clock = { now: () => new Date(), monotonic: () => performance.now() + jumped };
    const left: number[] = [];
    await start(
      {
        kicked: async (_, call) => {
          jumped += seconds(6);
          left.push(call.mayTouchDevice(seconds(10)));
          await eventually(async () => expect(call.mayTouchDevice(seconds(10))).toBeGreaterThan(seconds(9)));
          return happened("settled");
        },
      },
      { clock },
    );
    await nowIn("w", "idle");
    expect(left[0]).toBeLessThanOrEqual(seconds(6));
    expect(await typesOf("w")).toEqual(["transition"]);
  });
});

describe("a database that goes away", () => {
  test("while a handler asks it for something is no failure of the thing, and no bug", async () => {
    await placeWidgets(database.db, ["w"], "kicked");
    const errors: string[] = [];
    const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) };
    let asked = 0;
    const kicked = async () => {
      asked += 1;
      if (asked === 1) throw new AppError("unavailable", "the database cannot be reached: read ECONNRESET");
      return happened("settled");
    };
    await start({ kicked }, { log });
    await nowIn("w", "idle");
    expect(await typesOf("w")).toEqual(["transition"]);
    expect(await workOf("w")).toMatchObject({ failures: 0 });
    expect(errors).toEqual([]);
  });

  test("in the middle of the work loses nothing and doubles nothing", async () => {
    const ids = names(80);
    await placeWidgets(database.db, ids, "kicked");
    const admin = new pg.Client(database.pgConfig);
    await admin.connect();
    try {
      const engine = await start(
        {
          kicked: async () => {
            await turn();
            return happened("settled", { facts: { size: 1 }, effects: [] });
          },
        },
        { inFlight: 8 },
      );
      for (let times = 0; times < 5; times += 1) {
        const target = times * 10 + 5;
        await eventually(async () => expect(engine.handled.length).toBeGreaterThan(target));
        await admin.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'millwright-test'",
        );
      }
      await eventually(async () => {
        const { rows } = await admin.query("select id from widgets where state <> 'idle'");
        expect(rows).toEqual([]);
      });
      const { rows } = await admin.query<{ count: string }>(
        "select count(*) from journal where type = 'transition' group by id having count(*) <> 1",
      );
      expect(rows).toEqual([]);
    } finally {
      await admin.end();
    }
  });
});

test("locks that somebody holds for long delay only the things that they are on", async () => {
  await placeWidgets(database.db, ["locked", "free"], "kicked");
  await database.db.query("update work set wake_at = 'infinity' where id = 'locked'");
  await start({ kicked: async () => happened("settled") });
  await nowIn("free", "idle");
  await database.db.transaction(async (tx) => {
    await lockThings(tx, [widgetKey("locked")]);
    await wake("locked");
    await addWidgets(database.db, ["late"]);
    await nowIn("late", "idle");
    expect((await widget("locked")).state.name).toBe("kicked");
  });
  await nowIn("locked", "idle");
});
