import { expect, test } from "vitest";
import { judgeWrites } from "./store-writes.ts";

const WRITERS = [
  'await tx.query("insert into tokens (id) values ($1)");',
  "await tx.execute(`DELETE FROM secrets WHERE name = $1`);",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as it stands in the sources
  "await tx.query(`update ${store.table} t set\n  version = 1`);",
  "await tx.query(`update work set wake_at = now()`);",
];

test.each(WRITERS)("a store file that writes needs a fail point: %s", (text) => {
  expect(judgeWrites({ path: "src/store/a.ts", text })).toMatch(/^src\/store\/a\.ts: .* no failPoint/);
  expect(judgeWrites({ path: "src/store/a.ts", text: `${text}\nfailPoint("a:written");` })).toBeUndefined();
});

test.each([
  ["src/store/a.ts", "select 1 from work -- to be updated"],
  ["src/store/a.test.ts", "insert into work"],
  ["test/support/widget.ts", "insert into work"],
])("%s with %j needs none", (path, text) => {
  expect(judgeWrites({ path, text })).toBeUndefined();
});
