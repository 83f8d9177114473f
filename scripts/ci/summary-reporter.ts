import { writeFile } from "node:fs/promises";
import type { Reporter, SerializedError, TestModule } from "vitest/node";
import { type FileTime, summarizeTests, type TestOutcome } from "./test-summary.ts";

/**
 * Writes the summary of a run to the file that `TEST_SUMMARY_FILE` names; `.ci/run` ends with it. With `TEST_COUNTERPARTS=required`
 * a test that was skipped for want of its counterpart has failed.
 */
// biome-ignore lint/style/noDefaultExport: vitest loads reporters by their default export
export default class SummaryReporter implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): Promise<void> {
    const file = process.env.TEST_SUMMARY_FILE;
    if (file === undefined) throw new Error("TEST_SUMMARY_FILE must name the file to write the summary to");
    const unhandled = unhandledErrors.map(
      ({ message }): TestOutcome => ({ file: "", title: `unhandled error: ${message}`, state: "failed" }),
    );
    const counterpartsRequired = process.env.TEST_COUNTERPARTS === "required";
    const times = modules.map(timeOf);
    await writeFile(
      file,
      summarizeTests([...modules.flatMap(outcomesOf), ...unhandled], { times, counterpartsRequired }),
    );
  }
}

function timeOf(module: TestModule): FileTime {
  const { collectDuration, duration, environmentSetupDuration, prepareDuration, setupDuration } = module.diagnostic();
  const ms = collectDuration + duration + environmentSetupDuration + prepareDuration + setupDuration;
  return { file: module.relativeModuleId, seconds: ms / 1_000 };
}

function outcomesOf(module: TestModule): TestOutcome[] {
  const file = module.relativeModuleId;
  const broken = [module, ...module.children.allSuites()]
    .filter((group) => group.errors().length > 0)
    .map((group): TestOutcome => ({ file, title: group.type === "suite" ? group.fullName : "", state: "failed" }));
  const tests = [...module.children.allTests()].map((test): TestOutcome => {
    const result = test.result();
    // What did not come to an end did not pass.
    if (result.state === "pending") return { file, title: test.fullName, state: "failed" };
    const note = result.state === "skipped" ? result.note : undefined;
    const triedAgain = (test.diagnostic()?.retryCount ?? 0) > 0;
    return { file, title: test.fullName, state: result.state, note, triedAgain };
  });
  return [...broken, ...tests];
}
