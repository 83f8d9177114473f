import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase, StepStatus_State } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { createFakeTerminal, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const at = { seconds: 1_767_225_600n, nanos: 0 };
const NEXT = {
  runId: "run-2",
  machineId: "m-1",
  jobId: "job-1",
  jobState: "running",
  attempt: 2,
  action: "retry",
  previousRunId: "run-1",
  phase: Run_Phase.RUNNING,
  steps: [
    { name: "arm", state: StepStatus_State.SUCCEEDED, carriedOver: true },
    { name: "boot", state: StepStatus_State.RUNNING },
  ],
};

const said = ({ seq = 1n, stream = "stdout", text }: { seq?: bigint; stream?: string; text: string }) => ({
  chunk: { seq, ts: at, step: "boot", stream, data: Buffer.from(text) },
});

/** A server that keeps what it is asked, and whose runs end as told. */
function fakeServer(end: Run_Phase = Run_Phase.SUCCEEDED) {
  const asked: { readonly method: string; readonly request: Record<string, unknown> }[] = [];
  const keep = (method: string) => (request: object) => {
    const { $typeName: _, ...fields } = request as Record<string, unknown>;
    asked.push({ method, request: fields });
    return { run: NEXT };
  };
  let marked: { comment: string; by: string; at: typeof at } | undefined;
  const target = { kind: "machine", id: "m-1" };
  const routes = (router: ConnectRouter) => {
    router.service(RunActionsService, {
      retryRun: keep("retryRun"),
      resumeRun: keep("resumeRun"),
      rerunRun: keep("rerunRun"),
      restartRunClean: keep("restartRunClean"),
      adoptRun: keep("adoptRun"),
      markRunManual(request) {
        if (request.runId === "run-old")
          throw new ConnectError("run run-old is not the latest attempt at its job", Code.FailedPrecondition);
        marked = { comment: request.comment, by: "ann", at };
        return keep("markRunManual")(request);
      },
    });
    router.service(RunService, {
      getRun: ({ runId }) => ({
        run: {
          run: { ...NEXT, runId, phase: marked ? Run_Phase.FAILED : end, ...(marked && { manual: marked }) },
          target,
        },
      }),
      async *streamRunLogs() {
        yield said({ seq: 1n, stream: "stdout", text: "step boot begins\n" });
        yield said({ seq: 2n, stream: "stderr", text: "no disk\n" });
      },
    });
  };
  return { asked, routes };
}

describe("millwright run", () => {
  test.each([
    ["retry", "retryRun"],
    ["resume", "resumeRun"],
    ["rerun", "rerunRun"],
    ["restart-clean", "restartRunClean"],
    ["adopt", "adoptRun"],
  ])("%s asks for %s and shows the new attempt", async (command, method) => {
    const { asked, routes } = fakeServer();
    const { code: exitCode, out: stdout } = await runAgainst(routes, ["run", command, "run-1", "--request-id", "once"]);
    expect(exitCode).toBe(0);
    expect(asked).toEqual([{ method, request: expect.objectContaining({ runId: "run-1", requestId: "once" }) }]);
    expect(stdout).toContain("run-2");
    expect(stdout).toContain("2 (retry of run-1)");
    expect(stdout).toContain("SUCCEEDED (carried over)");
    expect(stdout).toMatch(/Job is\W+running/);
  });

  test("makes a request id of its own when none is given, another each time", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, ["run", "retry", "run-1"]);
    await runAgainst(routes, ["run", "retry", "run-1"]);
    const ids = asked.map(({ request }) => request.requestId);
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(ids[1]).not.toBe(ids[0]);
  });

  describe("on several runs", () => {
    const several = (disturbs: string) => {
      const { asked, routes: others } = fakeServer();
      const routes = (router: ConnectRouter) => {
        others(router);
        router.service(RunService, {
          getRun: ({ runId }) => ({
            run: {
              run: { ...NEXT, runId, type: "REBOOT", planId: "plan/reboot" },
              target: { kind: runId === "run-all" ? "batch" : "machine", id: "m-1" },
            },
          }),
          listRuns: ({ filter }) => ({
            runs: filter === "phase=FAILED" ? ["run-1", "run-3"].map((runId) => ({ run: { ...NEXT, runId } })) : [],
          }),
        });
        router.service(RunActionsService, {
          retryRun: (request) => {
            if (request.runId === "run-old") throw new ConnectError("not the latest attempt", Code.FailedPrecondition);
            asked.push({ method: "retryRun", request: { runId: request.runId } });
            return { run: { ...NEXT, runId: `next-of-${request.runId}` } };
          },
          previewRun: () => ({ planId: "plan/reboot", disturbsCluster: disturbs }),
        });
      };
      const ids = () => asked.map(({ request }) => request.runId);
      return { routes, ids };
    };

    test("each is done again; one that is refused keeps no other from it, and the exit code tells", async () => {
      const { routes, ids } = several("");
      const { code, out, err } = await runAgainst(routes, "run retry run-1 run-old run-3 run-1");
      expect({ code, ids: ids() }).toEqual({ code: 4, ids: ["run-1", "run-3"] });
      expect(err).toContain("error: run-old: not the latest attempt");
      expect(out).toMatch(/next-of-run-1[\s\S]*next-of-run-3/);
    });

    test.each([
      [
        "a machine that serves a cluster",
        "run retry run-1 run-3",
        "prod",
        /run-1 works on m-1, which serves prod and is not drained/,
      ],
      ["one run alone", "run retry run-1", "prod", /run-1 works on m-1/],
      ["runs that a filter chose", "run retry --filter phase=FAILED", "", /retry 2 runs \(run-1, run-3\)/],
      ["a batch", "run retry run-all", "", /run-all starts runs on many machines/],
    ])("confirmation is required for %s, and --yes says it", async (_, line, disturbs, asks) => {
      const { routes, ids } = several(disturbs);
      const { code, err } = await runAgainst(routes, line);
      expect({ code, ids: ids() }).toEqual({ code: 2, ids: [] });
      expect(err).toMatch(asks);
      expect((await runAgainst(routes, line, { isTTY: true, answer: "yes" })).code).toBe(0);
      const once = ids().length;
      expect(once).toBeGreaterThan(0);
      expect((await runAgainst(routes, `${line} --yes`)).code).toBe(0);
      expect(ids()).toHaveLength(2 * once);
    });

    test("neither or both of ids and filter, and a filter that admits none, are refused", async () => {
      const { routes, ids } = several("");
      for (const line of ["run retry", "run retry run-1 --filter phase=FAILED", "run retry --filter phase=DONE --yes"])
        expect((await runAgainst(routes, line)).code, line).toBe(2);
      expect(ids()).toEqual([]);
    });
  });

  test("retry takes changed scripts only when told so", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, ["run", "retry", "run-1"]);
    await runAgainst(routes, ["run", "retry", "run-1", "--new-scripts"]);
    expect(asked.map(({ request }) => request.takeNewScripts)).toEqual([false, true]);
    expect((await runAgainst(routes, ["run", "resume", "run-1", "--new-scripts"])).code).toBe(2);
  });

  test.each([
    ["SUCCEEDED", Run_Phase.SUCCEEDED, 0],
    ["FAILED", Run_Phase.FAILED, 1],
  ])("resume --wait follows the log, and its exit code says that it %s", async (_, end, code) => {
    const { routes } = fakeServer(end);
    const { code: exitCode, out: stdout } = await runAgainst(routes, ["run", "resume", "run-1", "--wait"]);
    expect(exitCode === 0).toBe(code === 0);
    expect(stdout).toContain("step boot begins");
  });

  test("who interrupts --wait is told that the run goes on", async () => {
    const terminal = createFakeTerminal();
    const routes = (router: ConnectRouter) => {
      fakeServer().routes(router);
      router.service(RunService, {
        async *streamRunLogs(_, { signal }) {
          yield said({ text: "step boot begins\n" });
          terminal.interrupt();
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        },
      });
    };
    const { code, err } = await runAgainst(routes, ["run", "retry", "run-1", "--wait"], { terminal });
    expect(code).toBe(130);
    expect(err).toContain("The run goes on. Follow it: millwright run logs run-2 --follow");
  });

  /** Stops at the first call after what it has said so far, and is back for the next; or never comes back. */
  function stoppingServer(comesBack: boolean) {
    const { routes: others } = fakeServer();
    const asked: bigint[] = [];
    const pieces = ["step boot begins\n", "step boot is done\n"].map((text, index) =>
      said({ seq: BigInt(index + 1), text }),
    );
    const routes = (router: ConnectRouter) => {
      others(router);
      router.service(RunService, {
        getRun: () => ({ run: { run: { ...NEXT, phase: Run_Phase.SUCCEEDED } } }),
        async *streamRunLogs({ after }) {
          asked.push(after);
          const isBack = comesBack && asked.length > 2;
          yield* pieces.filter(({ chunk: { seq } }) => seq > after && (isBack || seq === 1n));
          if (!isBack) throw new ConnectError("the server is stopping; call again", Code.Unavailable);
        },
      });
    };
    return { asked, routes };
  }

  test.each(["retry run-1 --wait", "logs run-2 --follow"])(
    "%s goes on after the last piece when its server stops and is back",
    async (line) => {
      const { asked, routes } = stoppingServer(true);
      const { code, out, err } = await runAgainst(routes, `run ${line}`);
      expect(code).toBe(0);
      expect(asked).toEqual([0n, 1n, 1n]);
      expect(out).toMatch(/^step boot begins\nstep boot is done\n/);
      expect(err.split("connection lost (the server is stopping; call again); trying again")).toHaveLength(2);
    },
  );

  test("--wait gives up on a server that does not come back, and says that the run goes on", async () => {
    let minute = 0;
    const terminal = { ...createFakeTerminal(), now: () => new Date(60_000 * minute++) };
    const { routes } = stoppingServer(false);
    const { code, err } = await runAgainst(routes, "run retry run-1 --wait", { terminal });
    expect(code).toBe(6);
    expect(err).toContain("The run goes on. Follow it: millwright run logs run-2 --follow");
    expect(err).toContain("error: the server is stopping; call again");
  });

  test("--wait that breaks off for another reason says that the run goes on, and does not try again", async () => {
    let asked = 0;
    const routes = (router: ConnectRouter) => {
      fakeServer().routes(router);
      router.service(RunService, {
        // biome-ignore lint/correctness/useYield: it breaks off before it has said anything
        async *streamRunLogs() {
          asked += 1;
          throw new ConnectError("the token was revoked", Code.Unauthenticated);
        },
      });
    };
    const { code, err } = await runAgainst(routes, "run retry run-1 --wait");
    expect([code, asked]).toEqual([5, 1]);
    expect(err).toContain("The run goes on. Follow it: millwright run logs run-2 --follow");
  });

  test("for programs, --wait leaves standard output to the result", async () => {
    const { out, err } = await runAgainst(fakeServer().routes, ["run", "resume", "run-1", "--wait", "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({ run_id: "run-2", phase: "SUCCEEDED" });
    expect(err).toContain("step boot begins\nno disk\n");
  });

  test("logs show a character whole although it comes in two pieces, each stream for itself", async () => {
    const routes = (router: ConnectRouter) => {
      const pieces: readonly [string, Buffer][] = [
        ["stdout", Buffer.from([0x63, 0x61, 0x66, 0xc3])],
        ["stderr", Buffer.from("Progress: 10%")],
        ["stdout", Buffer.from([0xa9])],
        ["stderr", Buffer.from(" 20%\n")],
      ];
      router.service(RunService, {
        async *streamRunLogs() {
          yield* pieces.map(([stream, data], index) => ({
            chunk: { seq: BigInt(index + 1), ts: at, step: "say", stream, data },
          }));
        },
      });
    };
    expect((await runAgainst(routes, ["run", "logs", "run-2"])).out).toBe("cafProgress: 10%é 20%\n");
  });

  test("logs have what steps said and why they failed on standard output; for programs they are records, one a line", async () => {
    const { routes } = fakeServer();
    expect(await runAgainst(routes, ["run", "logs", "run-2"])).toMatchObject({
      out: "step boot begins\nno disk\n",
      err: "",
    });
    const { out } = await runAgainst(routes, ["run", "logs", "run-2", "-o", "json"]);
    const lines = out.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { seq: "1", at: "2026-01-01T00:00:00.000Z", step: "boot", stream: "stdout", text: "step boot begins\n" },
      { seq: "2", at: "2026-01-01T00:00:00.000Z", step: "boot", stream: "stderr", text: "no disk\n" },
    ]);
    expect((await runAgainst(routes, ["run", "logs", "run-2", "-o", "csv"])).out).toMatch(/^seq,at,step,stream,text/);
  });

  test("mark-manual needs a comment, and shows who sees to it", async () => {
    const { asked, routes } = fakeServer();
    expect((await runAgainst(routes, ["run", "mark-manual", "run-1"])).code).toBe(2);
    const marked = await runAgainst(routes, ["run", "mark-manual", "run-1", "--comment", "fan broken"]);
    expect(marked.code).toBe(0);
    expect(marked.out).toContain("fan broken (ann");
    expect(asked).toEqual([
      { method: "markRunManual", request: expect.objectContaining({ runId: "run-1", comment: "fan broken" }) },
    ]);
  });

  test("shows why the server refused", async () => {
    const { routes } = fakeServer();
    const refused = await runAgainst(routes, ["run", "mark-manual", "run-old", "--comment", "x"]);
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain("not the latest attempt");
  });
});
