import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { performEach } from "./perform-each.ts";

test("each thing is tried, what fails is told in its place, and only some are at work at a time", async () => {
  let [busy, most] = [0, 0];
  const results = await performEach(
    [1, 2, 3, 4, 5, 6, 7],
    async (n) => {
      busy += 1;
      most = Math.max(most, busy);
      await Promise.resolve();
      busy -= 1;
      if (n % 3 === 0) throw new ConnectError(`no ${n}`, Code.FailedPrecondition);
      return { kind: "run", id: `run-${n}`, refusal: "", next: "" };
    },
    (n) => ({ kind: "run", id: `run-${n}` }),
  );
  expect(results.map(({ id, refusal }) => `${id} ${refusal}`.trim())).toEqual([
    ...["run-1", "run-2", "run-3 no 3", "run-4", "run-5", "run-6 no 6", "run-7"],
  ]);
  expect(most).toBe(3);
});
