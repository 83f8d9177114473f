import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService } from "../../../contract/millwright/v1/run_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

/** A run that has ended, and said 2,500 lines more than it did: every hundredth is a warning of another step, in bytes of no encoding. */
let surface: RunSurface;
let runId: string;
beforeAll(async () => {
  surface = await startRunSurface({ controller: true, fake: { speed: "instant" } });
  await surface.addMachine("m-1", "fake");
  ({ runId } = await surface.runs.startRun({ requestId: "r", machineId: "m-1", type: "REBOOT" }));
  expect((await surface.ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
  await surface.db.execute("delete from run_logs where run_id = $1", [runId]);
  await surface.db.execute(
    `insert into run_logs (run_id, seq, at, step, stream, data, bytes_so_far)
     select $1, i, now(), case when i % 100 = 0 then 'other' else 'reboot' end, case when i % 100 = 0 then 'stderr' else 'stdout' end,
            case when i % 100 = 0 then convert_to('WARN 50% ' || chr(92) || ' ', 'UTF8') || decode('ff', 'hex') || convert_to(i || E'\\n', 'UTF8') else convert_to('line ' || i || E'\\n', 'UTF8') end, i * 10
       from generate_series(1, 2500) i`,
    [runId],
  );
});
afterAll(() => surface.close());

const runs = () => surface.client(RunService);
async function all(part: object): Promise<number[]> {
  const seqs: number[] = [];
  let before = 0n;
  for (;;) {
    const { chunks, more } = await runs().readRunLog({ runId, before, ...part });
    seqs.unshift(...chunks.map(({ seq }) => Number(seq)));
    before = chunks[0]?.seq ?? 0n;
    if (!more) return seqs;
  }
}

test("a log is read from its end backwards, every piece once", async () => {
  const { chunks, more } = await runs().readRunLog({ runId, limit: 3 });
  expect(chunks.map(({ seq }) => Number(seq))).toEqual([2_498, 2_499, 2_500]);
  expect(more).toBe(true);
  expect(await all({ limit: 700 })).toEqual(Array.from({ length: 2_500 }, (_, at) => at + 1));
  expect((await runs().readRunLog({ runId, before: 1n })).chunks).toEqual([]);
});

test.each([
  [{ step: "other" }, 25],
  [{ stream: "stderr" }, 25],
  [{ contains: "warn" }, 25],
  [{ contains: "LINE 24" }, 110],
  [{ contains: "50% \\" }, 25],
  [{ contains: "50_" }, 0],
  [{ contains: "line 7\n" }, 1],
  [{ step: "other", contains: "line" }, 0],
] as const)("a part of it is found by %j", async (part, count) => {
  expect(await all({ ...part, limit: 10 })).toHaveLength(count);
});

test.each([
  [{ limit: 1_001 }, "limit"],
  [{ limit: -1 }, "limit"],
  [{ stream: "stdin" }, "stream"],
  [{ contains: "x".repeat(201) }, "contains"],
] as const)("a part %j is refused, naming the field", async (part, field) => {
  expect(await refusal(runs().readRunLog({ runId, ...part }))).toMatchObject({ code: Code.InvalidArgument, field });
});

test("a place before the beginning is refused", async () => {
  expect(await refusal(runs().readRunLog({ runId, before: -1n }))).toMatchObject({ field: "before" });
});

test("a run that is not there has no log and no durations", async () => {
  expect(await refusal(runs().readRunLog({ runId: "nope" }))).toMatchObject({ code: Code.NotFound });
  expect(await refusal(runs().listUsualDurations({ runId: "nope" }))).toMatchObject({ code: Code.NotFound });
});

test("how long steps usually take is known from the runs that were there", async () => {
  const { steps } = await runs().listUsualDurations({ runId });
  expect(steps.map(({ step, samples }) => ({ step, samples }))).toEqual([{ step: "reboot", samples: 1 }]);
  const [reboot] = steps;
  const ms = (span: typeof reboot extends undefined ? never : { seconds: bigint; nanos: number } | undefined) =>
    Number(span?.seconds) * 1_000 + Number(span?.nanos) / 1e6;
  expect(ms(reboot?.p50)).toBeLessThanOrEqual(ms(reboot?.p95));
});

test("the command line prints the end of a log, and what contains a text", async () => {
  const cli = async (...args: string[]) => {
    const terminal = createFakeTerminal();
    const code = await runCli(["run", "logs", runId, ...args], {
      version: "1",
      terminal,
      transport: surface.transport,
    });
    return { code, out: terminal.out() };
  };
  expect((await cli("--tail", "2")).out).toMatch(/^line 2499\nWARN 50%/);
  expect((await cli("--grep", "LINE 12", "--tail", "3")).out).toBe("line 1297\nline 1298\nline 1299\n");
  expect((await cli("--tail", "2", "--follow")).code).toBe(2);
});
