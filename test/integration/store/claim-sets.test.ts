import { beforeEach, describe, expect, test, vi } from "vitest";
import { Controller } from "../../../src/engine/controller.ts";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import { decide } from "../../../src/kernel/decide.ts";
import { move } from "../../../src/kernel/effects.ts";
import type { Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { happened, type Outcome, waitFor } from "../../../src/kernel/outcome.ts";
import { milliseconds, minutes } from "../../../src/kernel/time/duration.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import type { ClaimSet, ThingKey } from "../../../src/store/lifecycle/things.ts";
import { applyVerb } from "../../../src/store/lifecycle/verbs.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { recordClaim, wishFor } from "../../support/claims.ts";
import {
  addChore,
  addCrate,
  crateKey,
  crateLifecycle,
  crateStores,
  createCrateTables,
  requestCrateWork,
} from "../../support/crate.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { createWidgetTable, getWidget, placeWidgets, widgetKey, widgetLifecycle } from "../../support/widget.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
  await createCrateTables(database.db);
});
beforeEach(() => database.db.query("truncate claims, work, widgets, crates, chores, journal"));
afterAll(() => database.drop());

const run = (id: string): ThingKey => ({ kind: "run", id });

/** Asks for a set of widgets; the holders in the way, each with its widget, or nothing. */
const acquire = (id: string, parts: readonly string[], set: Partial<Omit<ClaimSet, "targets">> = {}) =>
  database.db.transaction(async (tx) => {
    const targets = parts.map(widgetKey);
    await lockThings(tx, [run(id), ...targets]);
    const wish = { claimant: run(id), holder: run(id), targets, reason: `work of ${id}`, ...set };
    const wait = (await claims.acquire(tx, [wish])).get(wish);
    return (wait?.inTheWay ?? []).map(({ holder, thing }) => `${holder.id} on ${thing.id}`);
  });
const release = (id: string, ...parts: readonly string[]) =>
  database.db.transaction(async (tx) => {
    await lockThings(tx, [run(id), ...parts.map(widgetKey)]);
    return (await claims.releaseAll(tx, [run(id)])).map((claimant) => claimant.id);
  });
/** The queue of each widget: those who work on it in brackets, then the others in the order of their tickets. */
async function queues(): Promise<Record<string, string>> {
  const rows = await database.db.query<{ thing: string; queue: string }>(
    `select thing_id as thing, string_agg(case when granted_at is not null then '[' || holder_id || ']'
              when joined_at is not null then '(' || holder_id || ')' else holder_id end, ' '
              order by granted_at is null, joined_at is null, coalesce(ticket, seq)) as queue
       from claims group by thing_id order by thing_id`,
  );
  return Object.fromEntries(rows.map(({ thing, queue }) => [thing, queue]));
}
/** As if the claimant had asked so much earlier. */
const age = (id: string, by: string) =>
  database.db.execute(
    `update claims set requested_at = requested_at - $2::interval, bars_until = bars_until - $2::interval where holder_id = $1`,
    [id, by],
  );

describe("a set of claims", () => {
  test("is granted whole", async () => {
    expect(await acquire("a", ["w1", "w2", "w3"])).toEqual([]);
    expect(await queues()).toEqual({ w1: "[a]", w2: "[a]", w3: "[a]" });
  });

  test("that cannot be granted whole holds nothing, and names every holder that it waits for", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w3"]);
    expect(await acquire("c", ["w1", "w2", "w3"])).toEqual(["a on w1", "b on w3"]);
    expect(await queues()).toEqual({ w1: "[a] c", w2: "c", w3: "[b] c" });
  });

  test("keeps later claims off all its things while it waits, also off those that are free", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"]);
    expect(await acquire("c", ["w2"])).toEqual(["b on w2"]);
    expect(await acquire("d", ["w2", "w3"])).toEqual(["b on w2"]);
    expect(await queues()).toEqual({ w1: "[a] b", w2: "b c d", w3: "d" });
  });

  test("is woken by each release of what it waits for, and takes all of it when the last one has gone", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w2"]);
    await acquire("c", ["w1", "w2"]);
    expect(await release("a", "w1")).toEqual(["c"]);
    expect(await acquire("c", ["w1", "w2"])).toEqual(["b on w2"]);
    expect(await queues()).toEqual({ w1: "c", w2: "[b] c" });
    expect(await release("b", "w2")).toEqual(["c"]);
    expect(await acquire("c", ["w1", "w2"])).toEqual([]);
    expect(await queues()).toEqual({ w1: "[c]", w2: "[c]" });
  });

  test("has one ticket, so that overlapping sets come in the order in which they asked, in every queue", async () => {
    await acquire("a", ["w1", "w2", "w3"]);
    await acquire("b", ["w3", "w1"]);
    await acquire("c", ["w1", "w2"]);
    await acquire("d", ["w2", "w3"]);
    expect(await queues()).toEqual({ w1: "[a] b c", w2: "[a] c d", w3: "[a] b d" });
    expect(await release("a", "w1", "w2", "w3")).toEqual(["b", "c"]);
    expect(await acquire("c", ["w1", "w2"])).toEqual(["b on w1"]);
    expect(await acquire("d", ["w2", "w3"])).toEqual(["c on w2", "b on w3"]);
    expect(await acquire("b", ["w3", "w1"])).toEqual([]);
    expect(await release("b", "w1", "w3")).toEqual(["c", "d"]);
    expect(await acquire("c", ["w1", "w2"])).toEqual([]);
  });

  test("that changes takes a new ticket, behind those who have come since", async () => {
    await acquire("a", ["w1", "w2"]);
    await acquire("b", ["w1", "w2"]);
    await acquire("c", ["w1"]);
    expect(await queues()).toEqual({ w1: "[a] b c", w2: "[a] b" });
    expect(await acquire("b", ["w1", "w3"])).toEqual(["a on w1"]);
    expect(await queues()).toEqual({ w1: "[a] c b", w2: "[a]", w3: "b" });
  });

  test("that changes while it waits lets those go on who waited for it alone", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"]);
    await acquire("c", ["w2"]);
    await acquire("b", ["w1", "w3"]);
    expect(await queues()).toEqual({ w1: "[a] b", w2: "[c]", w3: "b" });
    expect(await database.db.query("select id from work where wake_at <= now()")).toEqual([{ id: "c" }]);
  });

  test("of nothing is granted at once; a ticket that it had is dropped", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"]);
    expect(await acquire("b", [])).toEqual([]);
    expect(await queues()).toEqual({ w1: "[a]" });
  });

  test("names a thing once, however often it is asked for", async () => {
    expect(await acquire("a", ["w1", "w1", "w2"])).toEqual([]);
    expect(await acquire("a", ["w1", "w1", "w2"])).toEqual([]);
    expect(await queues()).toEqual({ w1: "[a]", w2: "[a]" });
  });
});

describe("claims of a server that knew no sets", () => {
  beforeEach(async () => {
    for (const id of ["a", "b"]) await recordClaim(database.db, widgetKey("w1"), run(id), "RUNNING");
  });

  test("are held, awaited and handed on as before", async () => {
    expect(await queues()).toEqual({ w1: "[a] b" });
    expect(await acquire("b", ["w1"])).toEqual(["a on w1"]);
    expect(await release("a", "w1")).toEqual(["b"]);
    expect(await acquire("b", ["w1"])).toEqual([]);
    expect(await queues()).toEqual({ w1: "[b]" });
  });

  test("come before sets that are asked for later", async () => {
    expect(await acquire("c", ["w1", "w2"])).toEqual(["a on w1"]);
    expect(await release("a", "w1")).toEqual(["b"]);
    expect(await acquire("c", ["w1", "w2"])).toEqual(["b on w1"]);
    expect(await release("b", "w1")).toEqual(["c"]);
    expect(await acquire("c", ["w1", "w2"])).toEqual([]);
  });
});

describe("a bar", () => {
  test("that has ended keeps the ticket: later ones may pass, and it goes on waiting", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"], { barsFor: minutes(5) });
    await age("b", "5 minutes");
    expect(await acquire("c", ["w2"])).toEqual([]);
    expect(await acquire("b", ["w1", "w2"], { barsFor: minutes(5) })).toEqual(["a on w1", "c on w2"]);
    expect(await queues()).toEqual({ w1: "[a] b", w2: "[c] b" });
    await release("c", "w2");
    await release("a", "w1");
    expect(await acquire("b", ["w1", "w2"], { barsFor: minutes(5) })).toEqual([]);
  });

  test("of no length at all keeps nobody off; who waits so is woken with those who pass it", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"], { barsFor: milliseconds(0) });
    expect(await acquire("c", ["w2"])).toEqual([]);
    expect(await acquire("d", ["w1"])).toEqual(["a on w1"]);
    expect(await release("a", "w1")).toEqual(["b", "d"]);
    expect(await queues()).toEqual({ w1: "[d] b", w2: "[c] b" });
  });

  test("ends after half an hour for those who do not say", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"]);
    await age("b", "29 minutes");
    expect(await acquire("c", ["w2"])).toEqual(["b on w2"]);
    await age("b", "1 minute");
    expect(await acquire("c", ["w2"])).toEqual([]);
  });

  test("of another length is another set", async () => {
    await acquire("a", ["w1", "w2"]);
    await acquire("b", ["w1", "w2"], { barsFor: milliseconds(0) });
    await acquire("c", ["w1"]);
    await acquire("b", ["w1", "w2"], { barsFor: minutes(5) });
    expect(await queues()).toEqual({ w1: "[a] c b", w2: "[a] b" });
  });
});

describe("work on behalf of a holder", () => {
  const forA = { holder: run("a") };

  test("goes on under the holder's claim, whoever waits for that, and leaves the claim with the holder", async () => {
    await acquire("a", ["w1", "w2"]);
    await acquire("other", ["w1"]);
    expect(await acquire("child", ["w1"], forA)).toEqual([]);
    expect(await queues()).toEqual({ w1: "[a] (child) other", w2: "[a]" });
    expect(await release("child", "w1")).toEqual([]);
    expect(await queues()).toEqual({ w1: "[a] other", w2: "[a]" });
  });

  test("keeps the thing for the holder when the holder's own claim ends first", async () => {
    await acquire("a", ["w1", "w2"]);
    await acquire("child", ["w1"], forA);
    await acquire("other", ["w1"]);
    expect(await release("a", "w1", "w2")).toEqual([]);
    expect(await queues()).toEqual({ w1: "[child] other" });
    expect(await acquire("sibling", ["w1"], forA)).toEqual([]);
    expect(await release("child", "w1")).toEqual([]);
    expect(await release("sibling", "w1")).toEqual(["other"]);
  });

  test("reaches what works for the one that works for the holder", async () => {
    await acquire("a", ["w1"]);
    await acquire("child", ["w1"], forA);
    expect(await acquire("grandchild", ["w1"], { holder: run("child") })).toEqual([]);
    await release("child", "w1");
    await release("a", "w1");
    expect(await acquire("other", ["w1"])).toEqual(["a on w1"]);
  });

  test("takes a claim of its own on what the holder does not have, and others are told of the holder", async () => {
    await acquire("a", ["w1"]);
    expect(await acquire("child", ["w2"], forA)).toEqual([]);
    expect(await acquire("other", ["w2"])).toEqual(["a on w2"]);
    expect(await release("child", "w2")).toEqual(["other"]);
  });

  test("waits for other holders as everybody does", async () => {
    await acquire("other", ["w2"]);
    await acquire("a", ["w1"]);
    expect(await acquire("child", ["w1", "w2"], forA)).toEqual(["other on w2"]);
    expect(await queues()).toEqual({ w1: "[a] child", w2: "[other] child" });
  });
});

describe("findInTheWay", () => {
  test("tells what acquire would, and writes nothing", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"]);
    const found = async (id: string, holder = id) => {
      const wish = { ...wishFor(widgetKey("w2"), run(id), "test"), holder: run(holder) };
      const inTheWay = await claims.findInTheWay(database.db, [{ ...wish, targets: ["w1", "w2"].map(widgetKey) }]);
      return [...inTheWay.values()].flat().map((claim) => `${claim.holder.id} on ${claim.thing.id}`);
    };
    const before = await queues();
    expect(await found("c")).toEqual(["a on w1", "b on w2"]);
    expect(await found("b")).toEqual(["a on w1"]);
    expect(await found("child", "a")).toEqual(["b on w2"]);
    expect(await queues()).toEqual(before);
  });
});

describe("a thing whose state needs several claims", () => {
  type Handlers = { readonly [kindAndState: string]: (id: string) => Promise<Outcome> };

  async function engine(handlers: Handlers, signal: AbortSignal): Promise<void> {
    const handlersOf =
      (kind: string): HandlerOf =>
      (state) => {
        const handle = handlers[`${kind} ${state}`];
        return handle && (async ({ id }) => handle(id));
      };
    const controller = new Controller({
      db: database.db,
      stores: crateStores,
      log: silentLog,
      handlers: new Map(["crate", "chore", "widget"].map((kind) => [kind, handlersOf(kind)])),
      grace: milliseconds(200),
    });
    await database.db.listen("millwright", () => controller.nudge(), signal);
    const running = controller.run(signal);
    onEnd(running);
  }
  const ends: Promise<void>[] = [];
  const onEnd = (running: Promise<void>) => ends.push(running);
  const withEngine = async (handlers: Handlers, body: () => Promise<void>) => {
    const stop = new AbortController();
    await engine(handlers, stop.signal);
    try {
      await body();
    } finally {
      stop.abort();
      await Promise.all(ends.splice(0));
    }
  };
  const forEver = async () => waitFor("at work", minutes(5));
  const untilSeen = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 20_000 });
  const crate = async (id: string) => {
    const { things } = await (crateStores.get("crate")?.load(database.db, [id]) ?? Promise.reject());
    return things[0];
  };
  const wake = (...keys: ThingKey[]) =>
    database.db.transaction(async (tx) => {
      await work.wake(tx, keys);
      await tx.query("select pg_notify('millwright', '')");
    });

  test("takes all of them in the commit that enters it, keeps them in the next such state, and releases all", async () => {
    const mayCheck = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    await addCrate(database.db, "c1", ["w1", "w2"]);
    await requestCrateWork(database.db, "c1");
    const handlers = {
      "crate working": () => mayCheck.promise.then(() => happened("worked")),
      "crate checking": () => mayEnd.promise.then(() => happened("checked")),
    };
    await withEngine(handlers, async () => {
      await untilSeen(async () => expect(await queues()).toEqual({ w1: "[c1]", w2: "[c1]" }));
      expect(await acquire("x", ["w2"])).toEqual(["c1 on w2"]);
      mayCheck.resolve();
      await untilSeen(async () => expect((await crate("c1"))?.state.name).toBe("checking"));
      expect(await queues()).toEqual({ w1: "[c1]", w2: "[c1] x" });
      mayEnd.resolve();
      await untilSeen(async () => expect(await queues()).toEqual({ w2: "[x]" }));
    });
    expect(await database.db.query("select id from work where kind = 'run' and wake_at <= now()")).toHaveLength(1);
  });

  test("may move one of the things that it takes into a state that needs its claim, in the same commit", async () => {
    await placeWidgets(database.db, ["w1"], "idle");
    await addCrate(database.db, "c1", ["w1", "w2"]);
    await requestCrateWork(database.db, "c1");
    const thing = (await crate("c1")) as Thing;
    const decided = decide(crateLifecycle as unknown as Lifecycle<Thing>, thing);
    if (decided.kind !== "move") throw new Error("a crate with work to do moves");
    const effects = [move(widgetLifecycle, "w1", "employed")];
    const unit = { kind: "crate", thing, move: decided.move, actor: "test", effects };
    const results = await database.db.transaction((tx) => commitUnits(tx, crateStores, [unit]));
    expect(results).toEqual([{ type: "committed" }]);
    expect((await getWidget(database.db, "w1")).state.name).toBe("busy");
    expect(await queues()).toMatchObject({ w2: "[c1]" });
  });

  test("says whom it waits for, all of them, and what each has", async () => {
    await acquire("a", ["w1", "w2"]);
    await acquire("b", ["w3"]);
    await acquire("d", ["w3", "w4"]);
    await addCrate(database.db, "c1", ["w1", "w2", "w3", "w4"]);
    await requestCrateWork(database.db, "c1");
    await withEngine({ "crate working": forEver }, async () => {
      await untilSeen(async () =>
        expect((await crate("c1"))?.outcome).toMatchObject({
          type: "waiting",
          reason:
            "waiting for run a (work of a), which works on widget w1, widget w2; run b (work of b), which works on widget w3; " +
            "run d (work of d), which is ahead of it in the queue for widget w4",
        }),
      );
      expect(await release("a", "w1", "w2")).toEqual(["c1"]);
      await wake(crateKey("c1"));
      await untilSeen(async () => expect((await crate("c1"))?.outcome?.reason).toMatch(/^waiting for run b/));
    });
    expect(await queues()).toEqual({ w1: "c1", w2: "c1", w3: "[b] d c1", w4: "d c1" });
  });

  test("has several in one batch: overlapping sets follow each other, others go at once", async () => {
    const mayEnd = Promise.withResolvers<void>();
    for (const [id, parts] of Object.entries({ c1: ["w1", "w2"], c2: ["w2", "w3"], c3: ["w4"], c4: ["w3", "w4"] }))
      await addCrate(database.db, id, parts);
    await requestCrateWork(database.db, "c1", "c2", "c3", "c4");
    const handlers = {
      "crate working": () => mayEnd.promise.then(() => happened("worked")),
      "crate checking": async () => happened("checked"),
    };
    await withEngine(handlers, async () => {
      await untilSeen(async () => {
        const rows = await database.db.query("select 1 from crates where state = 'ready' and outcome is null");
        expect(rows).toEqual([]);
      });
      for (const queue of Object.values(await queues())) expect(queue.match(/\[/g)?.length ?? 0).toBeLessThanOrEqual(1);
      mayEnd.resolve();
      await untilSeen(async () => {
        const open = await database.db.query(
          "select 1 from crates where work_requested is not null or state <> 'ready'",
        );
        expect(open).toEqual([]);
      });
    });
    expect(await queues()).toEqual({});
  });

  test("sees that its bar has ended: its table can end the request as expired, with the holders' names", async () => {
    await acquire("a", ["w1"]);
    await addCrate(database.db, "c1", ["w1", "w2"], { barsFor: minutes(30) });
    await requestCrateWork(database.db, "c1");
    await withEngine({ "crate working": forEver }, async () => {
      await untilSeen(async () => expect(await queues()).toEqual({ w1: "[a] c1", w2: "c1" }));
      await age("c1", "30 minutes");
      await wake(crateKey("c1"));
      await untilSeen(async () => {
        const [row] = await database.db.query("select work_requested, last_work_request from crates");
        expect(row).toMatchObject({
          work_requested: null,
          last_work_request: {
            outcome: "expired",
            message: expect.stringContaining("run a (work of a), which works on widget w1"),
          },
        });
      });
    });
    expect(await queues()).toEqual({ w1: "[a]" });
  });

  test("is checked again by itself when a bar that keeps it off has ended", async () => {
    await acquire("a", ["w1"]);
    await acquire("b", ["w1", "w2"], { barsFor: minutes(1) });
    await age("b", "59 seconds");
    await addCrate(database.db, "c1", ["w2"]);
    await requestCrateWork(database.db, "c1");
    await withEngine({ "crate working": forEver }, () =>
      untilSeen(async () => expect(await queues()).toEqual({ w1: "[a] b", w2: "[c1] b" })),
    );
  });

  test("leaves every queue when it goes while it waits", async () => {
    await acquire("a", ["w1"]);
    await addCrate(database.db, "c1", ["w1", "w2"]);
    await requestCrateWork(database.db, "c1");
    await withEngine({ "crate working": forEver }, () =>
      untilSeen(async () => expect(await queues()).toEqual({ w1: "[a] c1", w2: "c1" })),
    );
    await acquire("b", ["w2"]);
    await database.db.transaction((tx) =>
      applyVerb(tx, crateStores, { ...crateKey("c1"), owner: "caller", name: "scrap", actor: "tester" }),
    );
    expect(await queues()).toEqual({ w1: "[a]", w2: "[b]" });
  });

  test("goes on with what is left when one of the things is gone", async () => {
    await placeWidgets(database.db, ["w1", "w2"], "idle");
    await addCrate(database.db, "c1", ["w1", "w2"]);
    await requestCrateWork(database.db, "c1");
    await withEngine({ "crate working": forEver }, async () => {
      await untilSeen(async () => expect(await queues()).toEqual({ w1: "[c1]", w2: "[c1]" }));
      await database.db.transaction((tx) =>
        applyVerb(tx, crateStores, { ...widgetKey("w1"), owner: "caller", name: "scrap", actor: "tester" }),
      );
      expect(await queues()).toEqual({ w2: "[c1]" });
    });
  });

  test("has work done on its behalf without waiting for itself", async () => {
    const mayEnd = Promise.withResolvers<void>();
    await addCrate(database.db, "c1", ["w1", "w2"]);
    await requestCrateWork(database.db, "c1");
    const handlers = {
      "crate working": () => mayEnd.promise.then(() => happened("worked")),
      "crate checking": async () => happened("checked"),
      "chore pending": async () => happened("begun"),
      "chore doing": async () => happened("ended"),
    };
    await withEngine(handlers, async () => {
      await untilSeen(async () => expect(await queues()).toEqual({ w1: "[c1]", w2: "[c1]" }));
      await addChore(database.db, "ours", "w1", "c1");
      await addChore(database.db, "other", "w2");
      await wake({ kind: "chore", id: "ours" }, { kind: "chore", id: "other" });
      const stateOf = async (id: string) =>
        (await database.db.query<{ state: string }>("select state from chores where id = $1", [id]))[0]?.state;
      await untilSeen(async () => expect(await stateOf("ours")).toBe("done"));
      await untilSeen(async () => expect(await queues()).toEqual({ w1: "[c1]", w2: "[c1] other" }));
      mayEnd.resolve();
      await untilSeen(async () => expect(await stateOf("other")).toBe("done"));
    });
    expect(await queues()).toEqual({});
  });
});
