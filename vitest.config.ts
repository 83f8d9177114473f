import { defineConfig } from "vitest/config";
import { MixedSequencer } from "./scripts/ci/mixed-sequencer.ts";

/**
 * Whole processes on two shared cores are late now and then: in CI a second try tells a busy machine from a broken promise, and
 * `.ci/run` names every test that needed one.
 *
 * Tests of crashes and races get none. A race that is lost one time in a hundred fails one run in a hundred; a second try would
 * hide it for ever. They must wait for what has to happen, and not for as long as it usually takes.
 */
const SECOND_TRIES = { integration: 1, e2e: 1, browser: 1, chaos: 0 } as const;

/** `unit` needs nothing; the others share one PostgreSQL that the global setup starts, and clone a template database per file. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "simulator/**/*.test.ts", "scripts/**/*.test.ts", "console/src/**/*.test.ts"],
          // A limit for what hangs. Tests are quick, but the cores may be busy with the servers of other tests.
          testTimeout: 60_000,
        },
      },
      ...Object.entries(SECOND_TRIES).map(([name, retry]) => ({
        test: {
          name,
          include: [`test/${name}/**/*.test.ts`],
          globalSetup: ["test/support/global-setup.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          retry: process.env.CI ? retry : 0,
          // On a test or a group: `{ tags: "race" }`. On a file, such as all of test/integration/store: `// @module-tag race`.
          tags: [{ name: "race", description: "callers or replicas that meet; no second try", retry: 0 }],
        },
      })),
    ],
    sequence: { sequencer: MixedSequencer },
    maxWorkers: 4, // on two cores: tests wait for half of their time
  },
});
