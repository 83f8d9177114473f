import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { PreviewRunResponseSchema } from "../../../../../contract/millwright/v1/run_pb.js";
import { inTurns, summaryOf } from "./many-previews.ts";

const preview = (more: object) => create(PreviewRunResponseSchema, more);

test("what many runs would do is summed up: reboots, clusters, and who is in the way of which", () => {
  const summary = summaryOf([
    { machineId: "m-1", preview: preview({ reboots: 2, disturbsCluster: "prod" }) },
    { machineId: "m-2", preview: preview({ reboots: 1, disturbsCluster: "prod", warnings: ["odd"] }) },
    { machineId: "m-3", preview: preview({ conflicts: ["run-1 works on it"], missingCapabilities: ["media"] }) },
    { machineId: "m-4", refusal: "machine m-4 does not exist" },
  ]);
  expect(summary.reboots).toBe(2);
  expect([...summary.disturbed]).toEqual([["prod", 2]]);
  expect(summary.hindered).toEqual([
    { machineId: "m-3", why: ["its provider cannot do: media", "run-1 works on it"] },
    { machineId: "m-4", why: ["machine m-4 does not exist"] },
  ]);
  expect(summary.warned).toEqual([{ machineId: "m-2", why: ["odd"] }]);
});

test("never more than so many are under way, and results stand in the order of what they are of", async () => {
  let [now, most] = [0, 0];
  const results = await inTurns([5, 4, 3, 2, 1], 2, async (n) => {
    now += 1;
    most = Math.max(most, now);
    for (let turn = 0; turn < n; turn += 1) await Promise.resolve();
    now -= 1;
    return n * 10;
  });
  expect(results).toEqual([50, 40, 30, 20, 10]);
  expect(most).toBe(2);
  expect(await inTurns([], 2, async () => 1)).toEqual([]);
});
