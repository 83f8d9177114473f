import { expect, test } from "vitest";
import { parseFilter } from "../../../src/kernel/filter/parse-filter.ts";
import { filterSql } from "../../../src/store/postgres/filter-sql.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
});
afterAll(() => database.drop());

const FIELDS = { id: "text", rack: "text", labels: "labels" } as const;
const COLUMNS = { id: "m.id", rack: "m.rack", labels: { labels: "m.labels" } } as const;
const MACHINES = `(values ('m-1', 'rack-1', '{"env": "prod"}'::jsonb),
                          ('m-2', 'rack 2', '{"env": "dev", "a b": "x''y"}'::jsonb),
                          ('m-3', null, '{}'::jsonb),
                          ('m-4', '', '{"env": ""}'::jsonb)) as m(id, rack, labels)`;

test.each([
  ["", ["m-1", "m-2", "m-3", "m-4"]],
  ["rack=rack-1", ["m-1"]],
  ['rack="rack 2"', ["m-2"]],
  ["rack!=rack-1", ["m-2", "m-3", "m-4"]],
  ['rack=""', ["m-3", "m-4"]],
  ['rack!=""', ["m-1", "m-2"]],
  ['rack IN (rack-1, "rack 2")', ["m-1", "m-2"]],
  ['rack IN (rack-1, "")', ["m-1", "m-3", "m-4"]],
  ["labels.env=prod", ["m-1"]],
  ["labels.env!=prod", ["m-2", "m-3", "m-4"]],
  ["labels.env IN (prod, dev)", ["m-1", "m-2"]],
  ['labels.env=""', ["m-3", "m-4"]],
  ['labels.env!=""', ["m-1", "m-2"]],
  [`labels."a b"="x'y"`, ["m-2"]],
  ["rack!=rack-1 AND labels.env=dev", ["m-2"]],
])("%j finds what it says, and what is not set counts as empty", async (text, found) => {
  const values: unknown[] = [];
  const condition = filterSql(parseFilter(text, FIELDS), COLUMNS, values);
  const rows = await database.db.query<{ id: string }>(
    `select m.id from ${MACHINES} where ${condition} order by m.id`,
    values,
  );
  expect(rows.map(({ id }) => id)).toEqual(found);
});
