import type { ConnectRouter } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase, StepStatus_State } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

/** A run on a rack, with many runs on switches, of which one has started a run itself. */
const now = new Date("2026-01-01T00:10:00Z");
const at = (minute: number) => ({ seconds: BigInt(Date.UTC(2026, 0, 1, 0, minute) / 1_000), nanos: 0 });
const child = (id: string, phase: Run_Phase, more: object = {}) => ({
  runId: `run-${id}`,
  target: { kind: "switch", id: `sw-${id}` },
  step: "flash",
  round: 1,
  phase,
  startedAt: at(1),
  ...more,
});
const grandchild = {
  ...child("port", Run_Phase.PENDING, { message: "behind run-x" }),
  target: { kind: "port", id: "p-1" },
  step: "reset",
};
const children = [
  ...Array.from({ length: 12 }, (_, nth) => child(`ok-${nth}`, Run_Phase.SUCCEEDED, { finishedAt: at(3) })),
  child("bad", Run_Phase.FAILED, { message: "flash: it refuses", finishedAt: at(2) }),
  child("busy", Run_Phase.RUNNING, { currentStep: "flash", message: "60 %", round: 2, children: [grandchild] }),
];
const rack = {
  run: {
    runId: "run-rack",
    phase: Run_Phase.RUNNING,
    planId: "rack-work",
    currentStep: "flash",
    message: "13 of 14 have ended",
    createdAt: at(0),
    startedAt: at(0),
    steps: [
      { name: "cool", state: StepStatus_State.SUCCEEDED, message: "skipped: it is cold" },
      { name: "flash", state: StepStatus_State.SUCCEEDED, startedAt: at(1), finishedAt: at(4), message: "job 7" },
      { name: "flash", state: StepStatus_State.RUNNING, startedAt: at(5), message: "no answer" },
    ],
  },
  target: { kind: "rack", id: "rack-1" },
  children,
  stepDetails: [
    { name: "cool", round: 1, skipped: true },
    { name: "flash", round: 1, receipt: { job: 7 } },
    { name: "flash", round: 2, cause: { code: "timed_out", facts: { at: "bmc" } } },
  ],
};
const part = {
  run: { runId: "run-bad", phase: Run_Phase.RUNNING, createdAt: at(1), initiator: "run run-rack" },
  target: { kind: "switch", id: "sw-bad" },
  parent: { runId: "run-rack", step: "flash", round: 2 },
};

function server() {
  const asked: object[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(RunService, {
      getRun: ({ runId }) => ({ run: runId === "run-rack" ? rack : part }),
      listRuns({ filter, orderBy, pageSize, children: isWithChildren, withTotal }) {
        asked.push({ filter, orderBy, pageSize, children: isWithChildren, withTotal });
        return { runs: [rack, part], nextPageToken: "more", ...(withTotal && { totalSize: 7 }) };
      },
      async *watchRuns({ filter, cursor, children: isWithChildren }) {
        asked.push({ filter, cursor, children: isWithChildren });
        yield { event: { snapshot: rack.run, cursor: "c-1" }, target: rack.target, stepDetails: rack.stepDetails };
        yield { event: { snapshot: part.run, cursor: "c-2" }, target: part.target, parent: part.parent };
        throw new ConnectError("enough", Code.PermissionDenied);
      },
    });
    router.service(RunActionsService, {
      cancelJob({ runId }) {
        if (runId === "run-over") throw new ConnectError("run run-over has already ended", Code.FailedPrecondition);
        return { run: { runId } };
      },
    });
  };
  return { asked, routes };
}

const show = async (id: string) => (await runAgainst(server().routes, `run show ${id}`, { now })).out;

describe("run show", () => {
  test("has the tree of the runs that it started: what needs somebody first, what went well summed up", async () => {
    const out = await show("run-rack");
    const tree = out.slice(out.indexOf("Runs of step")).trimEnd().split("\n");
    expect(tree.map((line) => line.replace(/ {2,}/g, "  "))).toEqual([
      "Runs of step flash: 1 FAILED, 12 SUCCEEDED",
      "RUN  TARGET  PHASE  AT STEP  TOOK  MESSAGE",
      "└─ run-bad  switch/sw-bad  FAILED  -  1m  flash: it refuses",
      "12 SUCCEEDED: millwright run list --children --filter 'parent_run_id=run-rack AND phase=SUCCEEDED'",
      "",
      "Runs of step flash, round 2: 1 RUNNING",
      "RUN  TARGET  PHASE  AT STEP  TOOK  MESSAGE",
      "└─ run-busy  switch/sw-busy  RUNNING  flash  9m so far  60 %",
      "  └─ run-port  port/p-1  PENDING  -  9m so far  behind run-x",
    ]);
  });

  test("has rounds, skipped stages, receipts and the cause of what is in the way", async () => {
    const out = (await show("run-rack")).replace(/ {2,}/g, "  ");
    expect(out).toContain("Target:  rack/rack-1\n");
    expect(out).toContain("Cause:  timed_out (at=bmc)\n");
    expect(out).toContain("STEP  ROUND  STATE  FAILED ATTEMPTS  STARTED  TOOK  RECEIPT  MESSAGE\n");
    expect(out).toContain("cool  1  SKIPPED  0  -  -  -  skipped: it is cold\n");
    expect(out).toMatch(/flash {2}1 {2}SUCCEEDED {2}0 {2}\S+ {2}3m {2}job=7 {2}job 7\n/);
    expect(out).toMatch(/flash {2}2 {2}RUNNING {2}0 {2}\S+ {2}5m so far {2}- {2}no answer\n/);
  });

  test("of a part names the run and the step that it is a part of", async () => {
    expect((await show("run-bad")).replace(/ {2,}/g, "  ")).toContain("Part of:  run run-rack, step flash, round 2\n");
  });

  test("for programs has all of it, beside the fields that a run always had", async () => {
    const { out } = await runAgainst(server().routes, "run show run-rack -o json", { now });
    const json = JSON.parse(out);
    expect(json).toMatchObject({
      run_id: "run-rack",
      phase: "RUNNING",
      target: { kind: "rack", id: "rack-1" },
      step_details: [{ skipped: true }, { receipt: { job: 7 } }, { round: 2, cause: { code: "timed_out" } }],
    });
    expect(json.children).toHaveLength(14);
    expect(json.children[13].children).toMatchObject([{ run_id: "run-port", step: "reset" }]);
  });

  test("stays within a narrow terminal", async () => {
    const { out } = await runAgainst(server().routes, "run show run-rack --no-color", {
      now,
      isTTY: true,
      columns: 80,
    });
    // A command stays in one piece, so that it can be copied.
    const lines = out.split("\n").filter((line) => !line.includes("millwright run list"));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});

describe("run list", () => {
  const list = async (line: string) => {
    const { asked, routes } = server();
    return { ...(await runAgainst(routes, `run list ${line}`, { now })), asked };
  };

  test.each([
    ["--target rack/rack-1", "target_kind=rack AND target_id=rack-1"],
    ["--target ps/a/b", 'target_kind=power_shelf AND target_id="a/b"'],
    ["--target-kind power-shelf", "target_kind=power_shelf"],
    ["--machine m-1", "machine_id=m-1 OR target_kind=machine AND target_id=m-1"],
    [
      "--machine m-1 --filter phase=FAILED",
      "phase=FAILED AND (machine_id=m-1 OR target_kind=machine AND target_id=m-1)",
    ],
  ])("with %s asks for %s", async (line, filter) => {
    expect((await list(`${line} --limit 2`)).asked).toEqual([
      { filter, orderBy: "", pageSize: 2, children: false, withTotal: false },
    ]);
  });

  test("shows what a run works on, takes an order, and says how many there are", async () => {
    const { asked, out, err } = await list("--order-by target_id --total --limit 2");
    expect(asked).toMatchObject([{ orderBy: "target_id", withTotal: true }]);
    expect(out).toContain("RUN       TARGET         TYPE");
    expect(out).toContain("run-rack  rack/rack-1    -");
    expect(err).toBe("2 of 7\n");
  });

  test("says that there are more than it shows", async () => {
    expect((await list("--limit 2")).err).toBe("There are more; --limit 20 shows more, --total counts them.\n");
    expect((await list("--limit 2 -o json")).err).toBe("");
  });

  test("of children says what each is a part of; for programs the machine stays a column", async () => {
    const { asked, out } = await list("--children --limit 2");
    expect(asked).toMatchObject([{ children: true }]);
    expect(out).toContain("run-rack flash");
    const csv = (await list("--children --limit 2 -o csv")).out;
    expect(csv).toContain("run,machine,target,type,phase,step,created,part_of,message");
    expect(csv).toContain("run-bad,,switch/sw-bad,");
  });

  test("refuses a target without its kind", async () => {
    const { code, err } = await list("--target rack-1");
    expect(code).toBe(2);
    expect(err).toContain('--target: "rack-1" is not <kind>/<id>');
  });
});

describe("run cancel", () => {
  test("says what becomes of the runs that it has started", async () => {
    const { code, out, err } = await runAgainst(server().routes, "run cancel run-rack", { now });
    expect(code).toBe(0);
    expect(out).toContain("Runs of step flash: 1 FAILED");
    expect(err).toContain("Canceling run-rack: the run that it has started ends first, undoing what was begun.");
  });

  test("says what it means for the run that it is a part of", async () => {
    const { err } = await runAgainst(server().routes, "run cancel run-bad", { now });
    expect(err).toContain("Canceling run-bad: it undoes first what it has begun.");
    expect(err).toContain("Run run-rack (step flash) counts run-bad as failed.");
  });

  test("of many cancels those that can be, and ends with the code of the first refusal", async () => {
    const { code, out, err } = await runAgainst(server().routes, "run cancel run-over run-rack run-bad -o json", {
      now,
    });
    expect(code).toBe(4);
    expect(err).toContain("error: run run-over has already ended");
    expect(JSON.parse(out).map(({ run_id }: { run_id: string }) => run_id)).toEqual(["run-rack", "run-bad"]);
  });
});

describe("run watch", () => {
  test("without a run shows each change of all that are active, one a line", async () => {
    const { asked, routes } = server();
    const { out } = await runAgainst(routes, "run watch --children --target-kind rack -o json", { now });
    expect(asked).toEqual([{ filter: "target_kind=rack", cursor: "", children: true }]);
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { run_id: "run-rack", step_details: [{}, {}, { round: 2 }] },
      { run_id: "run-bad", parent: { run_id: "run-rack", step: "flash", round: 2 } },
    ]);
    const table = (await runAgainst(routes, "run watch", { now })).out.split("\n");
    expect(table[0]?.indexOf("PHASE")).toBe(table[1]?.indexOf("RUNNING"));
  });

  test("takes a run, or what chooses runs, and not both", async () => {
    expect((await runAgainst(server().routes, "run watch run-1 --children")).code).toBe(2);
  });
});
