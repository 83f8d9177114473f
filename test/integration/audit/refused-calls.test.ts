import { expect, test } from "vitest";
import { hours } from "../../../src/kernel/time/duration.ts";
import { countRefusedCalls, forgetRefusedCalls, type RefusedCalls } from "../../../src/store/access/refused-calls.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const rowAt = (ago: number, calls = 1): RefusedCalls => {
  const at = new Date(Date.now() - ago);
  return {
    minute: at,
    lastAt: at,
    address: "192.0.2.1",
    name: "",
    method: "GET /metrics",
    outcome: "sign_in_failed",
    calls,
  };
};
const counts = () => database.db.query<{ calls: number }>("select calls from refused_calls order by last_at");

test("replicas that count the same minute add up", async () => {
  const row = rowAt(0, 3);
  await Promise.all([1, 2, 3, 4].map(() => countRefusedCalls(database.db, [row])));
  expect(await counts()).toEqual([{ calls: 12 }]);
  await database.db.execute("delete from refused_calls");
});

test("rows go when they are old, and the oldest where there are too many", async () => {
  await countRefusedCalls(database.db, [
    rowAt(hours(50), 1),
    rowAt(hours(3), 2),
    rowAt(hours(2), 3),
    rowAt(hours(1), 4),
  ]);
  const forget = (mostRows: number) => forgetRefusedCalls(database.db, { keptFor: hours(24), most: 100, mostRows });
  expect(await forget(1_000)).toBe(1);
  expect(await counts()).toEqual([{ calls: 2 }, { calls: 3 }, { calls: 4 }]);
  expect(await forget(2)).toBe(1);
  expect(await counts()).toEqual([{ calls: 3 }, { calls: 4 }]);
  expect(await forget(2)).toBe(0);
});
