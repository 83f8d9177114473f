import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { type RunRecord, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { runCli } from "../../../../src/cli/run-cli.ts";
import { createFakeTerminal } from "../../../support/cli/fake-terminal.ts";
import { eventually } from "../../../support/eventually.ts";
import { baySteps, createBayTables } from "../../../support/rigs/bay.ts";
import { addBay, bayStores, requestMaintenance, startBayEngine } from "../../../support/rigs/bay-engine.ts";
import { createRigTables } from "../../../support/rigs/rig.ts";
import { type RigSurface, startRigSurface } from "../../../support/rigs/rig-surface.ts";
import { afterAll, beforeAll } from "../../../support/second-try.ts";

/** A bay's maintenance, carried out: what the API and the command line show of rounds, skipped stages, receipts and children. */
let surface: RigSurface;
let engine: { stop(): Promise<void> };
let record: RunRecord;
beforeAll(async () => {
  surface = await startRigSurface({ stores: bayStores, steps: baySteps });
  await createRigTables(surface.db);
  await createBayTables(surface.db);
  engine = await startBayEngine(surface.db);
  await addBay(surface.db, "bay-1", 3);
  await requestMaintenance(surface.db, "bay-1");
  const runs = surface.client(RunService);
  const isOver = { filter: "target_kind=bay AND phase=SUCCEEDED" };
  const { runId } = await eventually(async () => (await runs.listRuns(isOver)).runs[0]?.run, {
    what: "the run is over",
  });
  const { run } = await runs.getRun({ runId });
  if (!run) throw new Error("there is no run in the answer");
  record = run;
});
afterAll(async () => {
  await engine.stop();
  await surface.close();
});

async function millwright(...args: readonly string[]): Promise<string> {
  const terminal = createFakeTerminal();
  const code = await runCli(args, { version: "1", terminal, transport: surface.transport });
  expect(code, terminal.err()).toBe(0);
  return terminal.out();
}

describe("a run that goes back a stage", () => {
  test("shows each visit with its round, and which stage was skipped", () => {
    const visits = record.stepDetails.map(({ name, round, skipped }) => `${name} ${round}${skipped ? " skipped" : ""}`);
    expect(visits).toEqual(["cool_down 1 skipped", "flash_all 1", "check_bay 1", "flash_all 2", "check_bay 2"]);
    expect(record.run?.steps.map(({ name }) => name)).toEqual(record.stepDetails.map(({ name }) => name));
    expect(record.stepDetails[2]?.cause).toMatchObject({ code: "install_failed", facts: {} });
    expect(record.stepDetails[1]?.cause).toBeUndefined();
  });

  test("shows its children with step, round, phase and times", () => {
    const shown = record.children.map(({ step, round, target, phase }) => [step, round, target?.id, phase]);
    const gadgets = ["bay-1-g1", "bay-1-g2", "bay-1-g3"];
    const each = (round: number) => gadgets.map((id) => ["flash_all", round, id, Run_Phase.SUCCEEDED]);
    expect(shown.toSorted()).toEqual([...each(1), ...each(2)]);
    for (const { startedAt, finishedAt, message } of record.children)
      expect([startedAt, finishedAt, message], "begun and ended").not.toContain(undefined);
  });

  test("shows of a receipt what the step declares, and nothing else, wherever it is shown", async () => {
    const runs = surface.client(RunService);
    const listed = (await runs.listRuns({ children: true, filter: "target_kind=gadget" })).runs;
    expect(listed).toHaveLength(6);
    for (const { stepDetails } of listed) expect(stepDetails).toMatchObject([{ receipt: { job: expect.any(Number) } }]);
    const kept = await surface.db.query<{ facts: unknown }>("select facts from runs where parent_run_id is not null");
    expect(JSON.stringify(kept)).toContain("flash-session");
    const told = [
      await millwright("run", "list", "--children", "-o", "json"),
      await millwright("run", "show", record.run?.runId ?? "", "-o", "json"),
      await millwright("run", "show", listed[0]?.run?.runId ?? "", "-o", "json"),
      await millwright("history", "run", listed[0]?.run?.runId ?? "", "-o", "json"),
    ];
    for (const text of told) expect(text).not.toContain("flash-session");
  });
});

test("the command line shows the tree, and finds runs by what they work on", async () => {
  const runId = record.run?.runId ?? "";
  const shown = await millwright("run", "show", runId);
  expect(shown).toMatch(/^Target: +bay\/bay-1$/m);
  expect(shown).toMatch(/^cool_down +1 +SKIPPED .*it is cold$/m);
  expect(shown).toMatch(/^Runs of step flash_all, round 2: 3 SUCCEEDED$/m);
  expect(shown).toMatch(/^└─ run-\S+ +gadget\/bay-1-g\d +SUCCEEDED .* job \d+$/m);
  const child = record.children[0];
  expect(await millwright("run", "show", child?.runId ?? "")).toMatch(
    new RegExp(`^Part of: +run ${runId}, step flash_all$`, "m"),
  );
  const idsOf = async (...args: string[]) =>
    (JSON.parse(await millwright("run", "list", "-o", "json", ...args)) as { run_id: string }[]).map(
      ({ run_id }) => run_id,
    );
  expect(await idsOf("--target", "bay/bay-1")).toEqual([runId]);
  expect(await idsOf("--target", "gadget/bay-1-g1")).toEqual([]);
  expect(await idsOf("--target", "gadget/bay-1-g1", "--children")).toHaveLength(2);
  expect(await idsOf("--target-kind", "gadget", "--children", "--limit", "4")).toHaveLength(4);
  expect(await millwright("run", "watch", runId)).toContain("Runs of step flash_all");
});

test("a target that there is not is refused, and not just without runs", async () => {
  const terminal = createFakeTerminal();
  const { transport } = surface;
  const line = (target: string) => ["run", "list", "--target", target];
  expect(await runCli(line("gadget/none"), { version: "1", terminal, transport })).toBe(3);
  expect(await runCli(line("gadgetto/none"), { version: "1", terminal, transport })).toBe(2);
  expect(terminal.err()).toContain("gadget none does not exist");
  expect(terminal.err()).toContain('kind: "gadgetto" is none of batch, bay, ');
});
