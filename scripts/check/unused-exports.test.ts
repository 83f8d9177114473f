import { expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { readSourceFiles } from "./source-files.ts";
import { ALLOWED, findUnusedExports } from "./unused-exports.ts";

const faultsOf = (files: Readonly<Record<string, string>>) =>
  findUnusedExports(Object.entries(files).map(([path, text]) => ({ path, text })));

test("a declaration that nobody uses, or tests alone, is found", () => {
  const faults = faultsOf({
    "src/kernel/a.ts": "export const used = 1;\n\nexport function forTests() {}\nexport interface Forgotten {}\n",
    "src/kernel/b.ts": 'import { used } from "./a.ts";\nconsole.log(used);\n',
    "src/kernel/a.test.ts": 'import { forTests, used } from "./a.ts";\nforTests(used);\n',
    "bench/run.ts": 'import { forTests } from "../src/kernel/a.ts";\nforTests();\n',
  });
  expect(faults).toEqual([
    "src/kernel/a.ts:3 forTests is used by tests alone; move it to test/",
    "src/kernel/a.ts:4 Forgotten is used by nobody; delete it",
  ]);
});

test("a value that only its own file uses need not be exported, unless its test imports it; a type may be", () => {
  const own =
    "export const LIMIT = 1;\nexport type Limit = number;\nexport const check = (limit: Limit) => limit < LIMIT;\n";
  const user = { "src/kernel/b.ts": 'import { check } from "./a.ts";\ncheck(2);\n' };
  expect(faultsOf({ "src/kernel/a.ts": own, ...user })).toEqual([
    "src/kernel/a.ts:1 LIMIT is imported by nobody; it need not be exported",
  ]);
  const test = { "src/kernel/a.test.ts": 'import { LIMIT } from "./a.ts";\nLIMIT;\n' };
  expect(faultsOf({ "src/kernel/a.ts": own, ...user, ...test })).toEqual([]);
});

test("what is passed on, imported late or by its namespace is used", () => {
  const faults = faultsOf({
    "src/kernel/a.ts": "export const one = 1;\nexport const two = 2;\nexport const three = 3;\n",
    "src/kernel/b.ts": 'export { one } from "./a.ts";\n',
    "src/kernel/c.ts": 'export const late = async () => (await import("./a.ts")).two;\nlate();\n',
    "src/kernel/d.ts": 'import * as all from "./a.ts";\nimport { late } from "./c.ts";\nlate(all.three);\n',
  });
  expect(faults).toEqual([]);
});

test("what comments say is no use", () => {
  const faults = faultsOf({
    "src/kernel/a.ts": "/** `gone` is not used. */\nexport const gone = 1;\n",
    "src/kernel/b.ts": 'import "./a.ts";\n// gone\nconst url = "http://x/*";\n',
  });
  expect(faults).toEqual(["src/kernel/a.ts:2 gone is used by nobody; delete it"]);
});

test("every exception is still one", async () => {
  const faults = findUnusedExports(await readSourceFiles(root), {});
  const excused = faults.map((fault) => fault.replace(/^(\S+):\d+ (\w+) .*$/, "$1 $2"));
  expect(excused.toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
});
