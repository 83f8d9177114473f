import { expect, test } from "vitest";
import type { Thing } from "../../kernel/lifecycle.ts";
import { silentLog } from "../../kernel/log.ts";
import { collectThingStores } from "../../store/lifecycle/things.ts";
import type { Database } from "../../store/postgres/database.ts";
import { Lease } from "./lease.ts";
import { interruptOvertaken } from "./pass-interrupter.ts";

const thing = (id: string): Thing => ({
  id,
  version: 1,
  basis: 1,
  state: { name: "busy" },
  stateSince: new Date(0),
  stateVersion: 1,
  outcome: null,
  facts: {},
});

/** Leases whose passes began so many milliseconds ago, and a store that says which of them are overtaken. */
function setUp(passes: Readonly<Record<string, number>>, overtaken: (ids: string[]) => Promise<readonly string[]>) {
  const clock = { now: () => new Date(0), monotonic: () => 10_000 };
  const leaseOf = (kind: string, id: string, ago: number): Lease => {
    const lease = new Lease({ kind, id, epoch: 1, failures: 0 }, clock, 10_000);
    lease.thing = thing(id);
    lease.handlingSince = 10_000 - ago;
    return lease;
  };
  const leases = new Map(Object.entries(passes).map(([id, ago]) => [id, leaseOf("widget", id, ago)]));
  const stores = collectThingStores([
    {
      lifecycle: { kind: "widget" },
      overtaken: (_: Database, things: readonly Thing[]) => overtaken(things.map(({ id }) => id)),
    } as never,
    { lifecycle: { kind: "gadget" } },
  ]);
  const all = new Set([...leases.values(), leaseOf("gadget", "g", 5_000)]);
  const interrupt = () => interruptOvertaken({ db: {} as Database, stores, leases: all, clock, log: silentLog });
  return { leases, interrupt };
}

/** A pass that is interrupted may send nothing more. */
const isInterrupted = (lease: Lease | undefined): boolean => {
  try {
    lease?.callContext(new AbortController().signal).mayTouchDevice(1 as never);
    return false;
  } catch {
    return lease?.signal.aborted === true;
  }
};

test("passes that last are asked for in one question, and those that were overtaken are interrupted", async () => {
  const asked: string[][] = [];
  const { leases, interrupt } = setUp({ quick: 100, slow: 600, doomed: 700 }, async (ids) => {
    asked.push(ids);
    return ["doomed", "quick"];
  });
  await interrupt();
  expect(asked).toEqual([["slow", "doomed"]]);
  expect([...leases].map(([id, lease]) => [id, isInterrupted(lease)])).toEqual([
    ["quick", false],
    ["slow", false],
    ["doomed", true],
  ]);
});

test("nobody is asked while no pass lasts", async () => {
  const { interrupt } = setUp({ quick: 100 }, () => Promise.reject(new Error("asked")));
  await interrupt();
});

test("a pass that ended, or gave way to another one, while the question was under way is left alone", async () => {
  const { leases, interrupt } = setUp({ ended: 600, next: 600 }, async (ids) => {
    const [ended, next] = [leases.get("ended"), leases.get("next")];
    if (ended) ended.handlingSince = Number.POSITIVE_INFINITY;
    if (next) next.thing = thing("next");
    return ids;
  });
  await interrupt();
  expect([...leases.values()].map(isInterrupted)).toEqual([false, false]);
});
