import { describe, expect, test } from "vitest";
import { batchRuns, type StartOnMachine } from "./batch-runs.ts";

const machines = Array.from({ length: 30 }, (_, at) => `m-${at}`);

/** One pass of the step, and the machines that it asked for. */
async function pass(answerOf: (machineId: string, abort: () => void) => Awaited<ReturnType<StartOnMachine>>) {
  const stop = new AbortController();
  const asked: string[] = [];
  const context = {
    runId: "run-1",
    payload: { max_parallel: 1_000, stop_after: 0, type: "REBOOT", plan_id: "", params: {} },
    target: { id: "batch-1", machines },
    children: [],
    receipt: null,
    call: { signal: stop.signal },
    log: () => {},
    async startOn(id: string) {
      asked.push(id);
      return answerOf(id, () => stop.abort());
    },
  };
  const acted = await batchRuns.act(context as unknown as Parameters<typeof batchRuns.act>[0]);
  const woken = acted?.effects?.flatMap((effect) => (effect.type === "wake" ? [effect.id] : []));
  return { asked, refused: acted?.receipt?.refused, woken };
}

describe("one pass that starts runs on many machines", () => {
  test("starts a few of them, and leaves the rest to the next one, which follows at once", async () => {
    const { asked, woken } = await pass(() => "started");
    expect(asked).toEqual(machines.slice(0, 10));
    expect(woken).toContain("run-1");
    expect((await pass(() => ({ refused: "busy" }))).asked).toHaveLength(10);
  });

  test("ends at once when it is stopped, and keeps who was refused until then", async () => {
    const { asked, refused } = await pass((id, abort) => {
      if (id === "m-2") abort();
      return id === "m-1" ? { refused: "busy" } : "started";
    });
    expect(asked).toEqual(["m-0", "m-1", "m-2"]);
    expect(refused).toEqual({ "m-1": "busy" });
  });

  test("ends at once when its run is over, which is no fault of the machine", async () => {
    const { asked, refused } = await pass((id) => (id === "m-3" ? "over" : "started"));
    expect([asked.length, refused]).toEqual([4, {}]);
  });
});
