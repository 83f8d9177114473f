import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { PROFILE_NAMES, type ProfileName, traitsOf } from "../../simulator/devices/profile.ts";
import { KillLane } from "../support/processes/kill-lane.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { effectsSince, STEP_KINDS, type StepOnce } from "../support/step-kinds.ts";

/**
 * Kill -9 in the middle of steps that work with a BMC, over BMCs that are less helpful than the ideal one (run-kills.test.ts): by default
 * over the one with every unhelpful trait, with `CHAOS_LONG` over each profile. An installation with a seed is tried over the ideal one too.
 */
const PROFILES: readonly ProfileName[] = process.env.CHAOS_LONG === undefined ? ["ideal", "worst"] : PROFILE_NAMES;

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

/** BMCs that keep the boot source for every boot, which is cleared once the installer has called. */
const keepsOverride = (profile: ProfileName): boolean => traitsOf(profile).includes("once_kept_as_continuous");

/** From a medium that BMCs may download, by an installer that learns from a second one whose installation it is. */
const seededRepave = (boot_override_changes: number): StepOnce => ({
  ...kindOf("repave"),
  effects: { ...kindOf("repave").effects, media_inserts: 2, media_ejects: 2, boot_override_changes },
  // Slow enough that no machine has installed before somebody takes over from the dead.
  speed: 100,
});
const seeded = {
  title: "repave with a seed",
  isSeeded: true,
  failPoints: ["controller:handled", "committer:after"],
} as const;
/** No second medium can be inserted there. */
const SEEDED = PROFILE_NAMES.filter((name) => name !== "one_virtual_drive");

/** Each with what is done to its machine first, and on which profiles it comes out so. */
interface Work {
  readonly title: string;
  readonly work: StepOnce;
  readonly hasCrashed?: true;
  readonly isSeeded?: true;
  /** Absent: all but the ideal one. */
  readonly only?: readonly ProfileName[];
  /** Absent: all that are looked at. */
  readonly failPoints?: readonly string[];
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
  { ...seeded, work: seededRepave(1), only: SEEDED.filter((name) => !keepsOverride(name)) },
  { ...seeded, work: seededRepave(2), only: SEEDED.filter(keepsOverride) },
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
    test.for(WORK.filter(({ only }) => only?.includes(profile) ?? profile !== "ideal"))(
      "during a $title: nothing is lost or doubled",
      async ({ work, hasCrashed = false, isSeeded = false, failPoints = FAIL_POINTS }, { onTestFinished, expect }) => {
        const lane = await KillLane.open(bench, work, { profile, hasCrashed, isSeeded });
        onTestFinished(() => lane.close());
        const found = await lane.findPlaces();
        // What comes before the first step, and how commits are written, is the same on every BMC.
        const places = found.filter(
          ({ position, failPoint }) => POSITIONS.includes(position) && failPoints.includes(failPoint),
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
