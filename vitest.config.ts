import { defineConfig } from "vitest/config";

/** `unit` needs nothing; the others share one PostgreSQL that the global setup starts, and clone a template database per file. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "simulator/**/*.test.ts", "scripts/**/*.test.ts"],
          testTimeout: 10_000,
        },
      },
      ...["integration", "e2e", "chaos"].map((name) => ({
        test: {
          name,
          include: [`test/${name}/**/*.test.ts`],
          globalSetup: ["test/support/global-setup.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Whole processes on two shared cores: a second try tells a busy machine from a broken promise.
          retry: process.env.CI ? 1 : 0,
        },
      })),
    ],
    maxWorkers: 3,
  },
});
