import { afterEach, beforeEach, expect, test } from "vitest";
import type { Provider } from "../../../src/capabilities/provider.ts";
import type { SshTarget } from "../../../src/capabilities/ssh-target.ts";
import { ConditionReconciler, type ReconcilerOptions } from "../../../src/engine/conditions/condition-reconciler.ts";
import type { CheckPlaces } from "../../../src/engine/conditions/machine-check.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";

const KEY = "ssh-ed25519 AAAA";
const nowhere = { is: "nowhere", reason: "NoEndpoint", message: "" } as const;

let database: TestDatabase;
const stops: (() => Promise<void>)[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
  await database.drop();
});

/** Machines that answer by themselves: what is under test is who looks, when, and what becomes of it. */
class Fleet {
  readonly looks = new Map<string, number>();
  readonly lookers = new Set<string>();
  readonly underWay = new Map<string, number>();
  mostAtOnce = 0;
  answer: (id: string) => Promise<string> = async () => KEY;

  async add(count: number): Promise<void> {
    await database.db.query(
      "insert into machines (id, provider, state) select 'm-' || n, 'datacenter', 'READY' from generate_series(1, $1) n",
      [count],
    );
    await database.db.query("update condition_looks set due_at = now()");
  }

  placesFor(looker: string): ReconcilerOptions["placesOf"] {
    return async (machines) =>
      machines.map((machine): CheckPlaces => {
        const target: SshTarget = {
          address: machine.id,
          port: 22,
          username: "",
          credentials: { privateKey: "" },
          hostKey: null,
          jumpHosts: [],
        };
        return {
          provider: this.#provider(looker),
          ssh: { is: "at", target },
          bmc: nowhere,
          clusters: [nowhere],
          alerts: [],
        };
      });
  }

  get fewestLooks(): number {
    return Math.min(...this.looks.values());
  }

  #provider(looker: string): Provider {
    const readHostKey = async ({ address: id }: SshTarget) => {
      const now = (this.underWay.get(id) ?? 0) + 1;
      this.underWay.set(id, now);
      this.mostAtOnce = Math.max(this.mostAtOnce, now);
      this.lookers.add(looker);
      try {
        return await this.answer(id);
      } finally {
        this.underWay.set(id, now - 1);
        this.looks.set(id, (this.looks.get(id) ?? 0) + 1);
      }
    };
    const never = () => Promise.reject(new Error("nobody asks for this"));
    return { name: "test", can: { exec: { readHostKey, run: never, readFile: never } } };
  }
}

function start(fleet: Fleet, name: string, options: Partial<ReconcilerOptions> = {}): () => Promise<void> {
  const stopping = new AbortController();
  const reconciler = new ConditionReconciler({
    db: database.db,
    stores: allStores,
    placesOf: fleet.placesFor(name),
    log: silentLog,
    owner: name,
    interval: milliseconds(20),
    rate: 10_000,
    ...options,
  });
  const running = reconciler.run(stopping.signal);
  const stop = async () => {
    stopping.abort();
    await running;
  };
  stops.push(stop);
  return stop;
}

const reachable = async (id: string): Promise<boolean | undefined> => {
  const [row] = await database.db.query<{ conditions: { type: string; status: boolean }[] }>(
    "select conditions from machines where id = $1",
    [id],
  );
  return row?.conditions.find(({ type }) => type === "Reachable")?.status;
};

test("two replicas share the fleet, and never look at one machine at the same time", { tags: "race" }, async () => {
  const fleet = new Fleet();
  await fleet.add(60);
  start(fleet, "a", { inFlight: 20 });
  start(fleet, "b", { inFlight: 20 });
  await eventually(async () => fleet.looks.size === 60 && fleet.fewestLooks >= 4, { what: "all were looked at often" });
  expect(fleet.mostAtOnce).toBe(1);
  expect(fleet.lookers).toEqual(new Set(["a", "b"]));
});

test("a replica that stops hands back what it has not seen, at once", { tags: "race" }, async () => {
  const fleet = new Fleet();
  await fleet.add(5);
  const hanging = Promise.withResolvers<string>();
  fleet.answer = () => hanging.promise;
  const stop = start(fleet, "a");
  await eventually(async () => [...fleet.underWay.values()].filter((count) => count > 0).length === 5, {
    what: "all are being looked at",
  });
  const stopped = stop();
  hanging.resolve(KEY);
  await stopped;
  expect(
    await database.db.query(
      "select 1 from condition_looks where lease_owner is not null or due_at > now() + interval '1 s'",
    ),
  ).toEqual([]);
});

test("a machine that never answers holds up none of the others", async () => {
  const fleet = new Fleet();
  await fleet.add(30);
  fleet.answer = (id) => (id === "m-7" ? new Promise(() => undefined) : Promise.resolve(KEY));
  start(fleet, "a", { inFlight: 4 });
  await eventually(async () => fleet.looks.size === 29 && fleet.fewestLooks >= 3, { what: "the others go on" });
  expect(fleet.underWay.get("m-7")).toBe(1);
});

test("the rate is a budget: what it does not allow now waits its turn", async () => {
  const fleet = new Fleet();
  await fleet.add(40);
  let now = 0;
  start(fleet, "a", { rate: 10, clock: { ...systemClock, monotonic: () => now } });
  const total = () => [...fleet.looks.values()].reduce((sum, count) => sum + count, 0);
  await eventually(async () => total() === 10, { what: "a second's worth was looked at" });
  now += 500;
  await eventually(async () => total() === 15, { what: "half a second's worth more" });
  now += 1_000;
  await eventually(async () => total() === 25, { what: "and another second's" });
  // Those that have waited longest came first: nobody was looked at twice while others waited.
  expect(fleet.looks.size).toBe(25);
});

test("what a pass saw is not written over what was proven while it looked", async () => {
  const fleet = new Fleet();
  await fleet.add(1);
  await database.db.query("update condition_looks set misses = '{\"Reachable\": 1}'");
  const answering = Promise.withResolvers<string>();
  fleet.answer = () => answering.promise;
  start(fleet, "a", { interval: milliseconds(3_600_000) });
  await eventually(async () => fleet.underWay.get("m-1") === 1, { what: "it is being looked at" });
  await database.db.query(
    `update machines set basis = basis + 1, conditions =
       '[{"type": "Drained", "status": true, "reason": "Proven", "message": "", "last_transition": "2026-01-01T00:00:00Z"}]'`,
  );
  answering.resolve(KEY);
  await eventually(async () => fleet.looks.get("m-1") === 1, { what: "the look has ended" });
  await eventually(async () => (await reachable("m-1")) === true, { what: "a second look was written" });
  expect(fleet.looks.get("m-1")).toBe(2);
});
