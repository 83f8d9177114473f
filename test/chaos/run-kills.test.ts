import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { allSteps } from "../../src/runs/steps/index.ts";
import { type Killed, KillLane } from "../support/processes/kill-lane.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { type Place, POSITIONS, type Position } from "../support/processes/run-victim.ts";
import { effectsSince, STEP_KINDS, type StepOnce } from "../support/step-kinds.ts";

/**
 * Kill -9 at every fail point that a run comes through, wherever it is, for every kind of step: another replica finishes it, the
 * machine shows each effect once, and the log has no hole. The places are found by carrying out a run undisturbed.
 *
 * What was seen is printed, and must be what docs/reference/run-kills.md says; `WRITE_RUN_KILLS=1` writes it there.
 */
const PAGE = join(ROOT, "docs", "reference", "run-kills.md");

/** What comes before the first step is the same for all kinds: it is gone through with one. */
const COMMON: ReadonlySet<Position> = new Set(["not started", "PENDING"]);
const WITH_COMMON = "reboot";
/** Where every run comes by, whatever else there is. */
const CERTAIN = ["controller:handled", "committer:before", "committer:inside", "committer:after", "run-logs:appended"];

/** Whether a run comes by there depends on the device: a pass that finds it still at work gives its lease back and changes nothing. */
const isByChance = ({ position, failPoint }: Place) => position === "acted" && failPoint === "work:released";

vi.setConfig({ maxConcurrency: STEP_KINDS.length }); // a lane waits for its machines half of the time

let bench: ProcessBench;
const sections = new Map<string, string>();
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

test("every kind of step is killed", () => {
  expect(STEP_KINDS.map(({ kind }) => kind).sort()).toEqual([...allSteps.keys()].sort());
});

describe("replicas that carry out", { concurrent: true, timeout: 600_000 }, () => {
  test.for(STEP_KINDS.map((kind) => [kind.kind, kind] as const))(
    "%s can die at any fail point: nothing is lost, doubled or half done",
    async ([name, kind], { onTestFinished, expect }) => {
      const lane = await KillLane.open(bench, kind);
      onTestFinished(() => lane.close());
      const found = await lane.findPlaces();
      const places = found.filter(({ position }) => name === WITH_COMMON || !COMMON.has(position));
      expect(places.map(({ failPoint }) => failPoint)).toEqual(expect.arrayContaining(CERTAIN));
      for (const place of places) await lane.killAt(place, !isByChance(place));
      await lane.finishAll();

      expect(await lane.database.db.query("select * from claims")).toEqual([]);
      expect(await lane.database.db.query("select id from runs")).toHaveLength(places.length + 1); // and the undisturbed one
      for (const killed of lane.killed) {
        const where = `${killed.place.failPoint} (${killed.place.position})`;
        const run = await lane.run(killed.machineId);
        expect(run, `${where}: ${run?.error?.message}`).toMatchObject({ state: "SUCCEEDED" });
        expect(run?.steps, where).toMatchObject([{ name, state: "SUCCEEDED", retryCount: 0 }]);
        for (const step of killed.atDeath?.steps ?? [])
          expect(run?.steps[0]?.evidence, `${where}: gone on with, not begun anew`).toEqual(step.evidence);
        const { marks, lines } = await logOf(lane, run?.id ?? "");
        expect(marks, where).toEqual([`step ${name} begins`, `step ${name} is done`]);
        const { says = [] } = kind;
        const written = lines.filter((line) => says.includes(line));
        expect(written, `${where}: what its script wrote, once`).toEqual(says);
        expect(effectsSince(killed.before, await lane.truth(killed.machineId)), where).toEqual(kind.effects);
      }
      sections.set(name, describeKills(kind, lane.killed));
    },
  );
});

test("what was seen is what the reference says", () => {
  const page = [INTRODUCTION, ...STEP_KINDS.flatMap(({ kind }) => sections.get(kind) ?? [])].join("\n");
  process.stdout.write(`\n${page}\n`);
  if (process.env.WRITE_RUN_KILLS === "1") writeFileSync(PAGE, page);
  const kept = readFileSync(PAGE, "utf8");
  for (const section of [INTRODUCTION, ...sections.values()]) expect(kept).toContain(section);
});

/** The log and the marks in it, once it is seen that no number is missing. */
async function logOf(lane: KillLane, runId: string): Promise<{ readonly marks: string[]; readonly lines: string[] }> {
  const rows = await lane.database.db.query<{ seq: number; text: string }>(
    "select seq, convert_from(data, 'UTF8') as text from run_logs where run_id = $1 order by seq",
    [runId],
  );
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1));
  const said = rows.map(({ text }) => text).join("");
  return { marks: [...(said.match(/^step \S+ (begins|is done)/gm) ?? [])], lines: said.split("\n") };
}

const INTRODUCTION = `# Runs and kill -9

\`test/chaos/run-kills.test.ts\` carries out a run of one step, notes every fail point that its replica comes through, and then has a replica die at
each of them (SIGKILL), each in a run of its own. Another replica finishes what they left. This page is written by that test, and compared with what it sees.

A column says what the database held of the run when the look began in which the replica died: its intent with evidence from before, that the action
begins and by whom, that it was done, that the step is proven. A row is a fail point of the sources. "once" means: the run SUCCEEDED without a failed
attempt, went on under the same evidence, its log has every number from 1 on, tells each step's beginning and end once, and what a script wrote neither
twice nor with a hole, no claim is left, and the simulated machine counted exactly the effects named above the table. "(once)": the same, for runs that come by
there; whether one does depends on how long its device takes. "–": a run does not come by there.
`;

function describeKills({ kind, effects }: StepOnce, killed: readonly Killed[]): string {
  const seen = new Set(killed.map(({ place }) => keyOf(place)));
  const positions = POSITIONS.filter((position) => killed.some(({ place }) => place.position === position));
  const failPoints = [...new Set(killed.map(({ place }) => place.failPoint))].sort();
  const counted = Object.entries(effects).map(([name, count]) => `\`${name}\` ${count}`);
  const rows = failPoints.map((failPoint) => {
    const cells = positions.map((position) => {
      const place = { position, failPoint };
      return isByChance(place) ? "(once)" : seen.has(keyOf(place)) ? "once" : "–";
    });
    return `| \`${failPoint}\` | ${cells.join(" | ")} |`;
  });
  return `## ${kind}

Counted by the machine in every case: ${counted.length === 0 ? "nothing" : counted.join(", ")}.

| Killed at | ${positions.join(" | ")} |
|---|${positions.map(() => "---|").join("")}
${rows.join("\n")}
`;
}

const keyOf = ({ position, failPoint }: Place): string => `${position} ${failPoint}`;
