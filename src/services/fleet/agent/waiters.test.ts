import { expect, test } from "vitest";
import { silentLog } from "../../../kernel/log.ts";
import { Waiters } from "./waiters.ts";

test("of two calls of one agent the newer alone may take a task, and the older is answered at once", async () => {
  const waiters = new Waiters({
    events: { async *follow() {} },
    findNodes: async () => new Set(),
    log: silentLog,
  } as unknown as ConstructorParameters<typeof Waiters>[0]);
  const { signal } = new AbortController();
  const [older, ofAnother] = [waiters.enter("fn-1", signal), waiters.enter("fn-2", signal)];
  const newer = waiters.enter("fn-1", signal);
  await older.roused;
  expect([older, newer, ofAnother].map((each) => each.isReplaced())).toEqual([true, false, false]);
  for (const each of [older, newer, ofAnother]) each.leave();
});
