import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { PROFILE_NAMES, type ProfileName } from "../../simulator/devices/profile.ts";
import { KillLane } from "../support/processes/kill-lane.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { effectsSince, STEP_KINDS, type StepOnce } from "../support/step-kinds.ts";

/**
 * Kill -9 in the middle of steps that work with a BMC, over BMCs that are less helpful than the ideal one (run-kills.test.ts): by default
 * over the one with every unhelpful trait, with `CHAOS_LONG` over each profile.
 */
const PROFILES: readonly ProfileName[] =
  process.env.CHAOS_LONG === undefined ? ["worst"] : PROFILE_NAMES.filter((name) => name !== "ideal");

const kindOf = (kind: string): StepOnce => {
  const found = STEP_KINDS.find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`there is no step kind ${kind}`);
  return found;
};

/** A system that hangs, on a BMC that does not tell one boot from the next: off, read off, on, read on. */
const hung: StepOnce = {
  ...kindOf("reboot"),
  step: { ...kindOf("reboot").step, payload: { mode: "bmc", force: true } },
  effects: { power_off_commands: 1, power_on_commands: 1, resets: 2, power_changes: 2 },
  speed: 40,
};

/** Each with what is done to its machine first, and on which profiles it comes out so. */
interface Work {
  readonly title: string;
  readonly work: StepOnce;
  readonly hasCrashed?: true;
  readonly only?: readonly ProfileName[];
}
const WORK: readonly Work[] = [
  { title: "reboot", work: kindOf("reboot") },
  { title: "netboot", work: kindOf("netboot") },
  { title: "rma", work: kindOf("rma") },
  {
    title: "reboot of a system that hangs",
    work: hung,
    hasCrashed: true,
    only: ["worst", "sushy_tools", "no_last_reset_time"],
  },
];

/** What comes before the action, and how commits are written, is the same on every BMC: these are around the device's part in it. */
const POSITIONS: readonly string[] = ["announced", "acted"];
const FAIL_POINTS: readonly string[] = ["controller:loaded", "controller:handled", "committer:after"];

let bench: ProcessBench;
vi.setConfig({ maxConcurrency: WORK.length });
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

describe.each(PROFILES)(
  "replicas that die over a BMC that is %s",
  { concurrent: true, timeout: 600_000 },
  (profile) => {
    test.for(WORK.filter(({ only }) => only?.includes(profile) ?? true))(
      "during a $title: nothing is lost or doubled",
      async ({ work, hasCrashed = false }, { onTestFinished, expect }) => {
        const lane = await KillLane.open(bench, work, { profile, hasCrashed });
        onTestFinished(() => lane.close());
        const found = await lane.findPlaces();
        // What comes before the first step, and how commits are written, is the same on every BMC.
        const places = found.filter(
          ({ position, failPoint }) => POSITIONS.includes(position) && FAIL_POINTS.includes(failPoint),
        );
        expect(places.length).toBeGreaterThan(0);
        for (const place of places) await lane.killAt(place, false);
        await lane.finishAll();
        for (const killed of lane.killed) {
          const where = `${killed.place.failPoint} (${killed.place.position})`;
          const run = await lane.run(killed.machineId);
          expect(run, `${where}: ${run?.error?.message}`).toMatchObject({ state: "SUCCEEDED" });
          const { boots, ...counted } = effectsSince(killed.before, await lane.truth(killed.machineId));
          const { boots: expected = boots, ...effects } = work.effects;
          // Of a system that hangs it is proved that it was reset; it comes up later.
          expect({ boots, ...counted }, where).toEqual({ boots: expected, ...effects });
        }
      },
    );
  },
);
