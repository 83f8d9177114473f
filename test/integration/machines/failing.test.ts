import fc from "fast-check";
import { expect, test } from "vitest";
import { CONDITION_TYPES } from "../../../src/lifecycles/machine/conditions.ts";
import { EXCUSES, isFailing } from "../../../src/lifecycles/machine/failing.ts";
import { MACHINE_PHASES } from "../../../src/lifecycles/machine/machine.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const condition = fc.record({
  type: fc.constantFrom(...CONDITION_TYPES),
  status: fc.boolean(),
  // What conditions say must never be taken for what they are.
  reason: fc.constantFrom("Seen", "Degraded", ...EXCUSES),
  message: fc.constantFrom("", '"status": true', "NeedsIntervention"),
});
const machine = fc.record({
  phase: fc.constantFrom(...MACHINE_PHASES),
  conditions: fc.uniqueArray(condition, { selector: ({ type }) => type }),
});

test("what a list finds failing is what it shows as failing, whatever is known of the machines", async () => {
  const { db } = database;
  await fc.assert(
    fc.asyncProperty(fc.array(machine, { minLength: 1, maxLength: 200 }), async (machines) => {
      await db.query("delete from machines");
      const rows = await db.query<{ failing: string }>(
        `insert into machines (id, provider, state, conditions)
         select 'm-' || lpad(place::text, 3, '0'), 'fake', phase, conditions
           from unnest($1::text[], $2::jsonb[]) with ordinality as m(phase, conditions, place) order by place
         returning failing`,
        [machines.map(({ phase }) => phase), machines.map(({ conditions }) => JSON.stringify(conditions))],
      );
      expect(rows.map(({ failing }, at) => ({ ...machines[at], failing }))).toEqual(
        machines.map((each) => ({ ...each, failing: String(isFailing(each)) })),
      );
    }),
    { numRuns: 50 },
  );
});
