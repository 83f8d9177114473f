// @module-tag race
import { expect, test } from "vitest";
import type { LogLine } from "../../../src/kernel/effects.ts";
import { appendLogs, listLogs } from "../../../src/store/run/logs.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const MEBIBYTE = 1_024 * 1_024;

async function addRun(id: string): Promise<string> {
  await database.db.query(
    `insert into runs (id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state)
     values ($1, 'm-' || $1, 'r', '', '', 'p', '{}', 'job-' || $1, 'tester', 'RUNNING')`,
    [id],
  );
  return id;
}

const line = (text: string | Buffer): LogLine => ({
  at: "2026-01-01T00:00:00Z",
  step: "first",
  stream: "stdout",
  text,
});
const append = (...logs: [id: string, ...texts: (string | Buffer)[]][]) =>
  database.db.transaction((tx) =>
    appendLogs(
      tx,
      logs.map(([id, ...texts]) => ({ id, lines: texts.map(line) })),
    ),
  );
const textsOf = async (id: string) =>
  (await listLogs(database.db, id, 0, 100)).map(({ data }) => data.toString("utf8"));

test("each run counts its own lines on, however many runs are appended to at once", async () => {
  const [one, two] = [await addRun("run-one"), await addRun("run-two")];
  await append([one, "a\n", "b\n"], [two, "c\n"]);
  await append([two, "d\n"], [one, "e\n"]);
  expect(await textsOf(one)).toEqual(["a\n", "b\n", "e\n"]);
  expect(await textsOf(two)).toEqual(["c\n", "d\n"]);
  expect((await listLogs(database.db, one, 0, 100)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
});

test("a log that is full says so once, also when it fills up over many appends, and others go on", async () => {
  const [full, other] = [await addRun("run-full"), await addRun("run-other")];
  const large = `${"x".repeat(MEBIBYTE - 1)}\n`;
  for (let count = 0; count < 4; count += 1) await append([full, large]);
  await append([full, "one too many\n", "and another\n"], [other, "fine\n"]);
  await append([full, "still\n"], [other, "still fine\n"]);
  const kept = await textsOf(full);
  expect(kept).toHaveLength(5);
  expect(kept.at(-1)).toContain("the log of this run is full");
  expect(await textsOf(other)).toEqual(["fine\n", "still fine\n"]);
});

test("a line of our own does not go on with what a script left unfinished, and the script's own text is kept as it is", async () => {
  const id = await addRun("run-open");
  await append([id, Buffer.from("10% ")]);
  await append([id, Buffer.from("20%"), "step done\n", Buffer.from("more")]);
  expect(await textsOf(id)).toEqual(["10% ", "20%", "\nstep done\n", "more"]);
});
