import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allSteps } from "../steps/index.ts";

/** What every run goes through, whatever it works on. */
const FILES = [
  "children/child-run.ts",
  "children/fan-out.ts",
  "children/sum.ts",
  "executor/cancel-plan.ts",
  "executor/children.ts",
  "executor/clean-up-before.ts",
  "executor/end.ts",
  "executor/end-without-success.ts",
  "executor/executor.ts",
  "executor/residue.ts",
  "executor/run-context.ts",
  "executor/undo.ts",
  "executor/step/work.ts",
  "model/plan/resolve-plan.ts",
];
/** What belongs to one kind of target: it is declared by steps, or said in `targets/`. */
const WORDS = [
  "machine",
  "install",
  "installation",
  "phase_?on",
  "cluster",
  "node",
  "condition",
  "bmc",
  "boot",
  "rack",
];

test.each(FILES)("%s names no kind of target and no kind of step", (file) => {
  const source = readFileSync(join(import.meta.dirname, "..", file), "utf8");
  // `a.join(b)` is a word of the language.
  const text = source.replaceAll(/\.join\(/g, "(").replaceAll(/from "(node:[^"]*|[^"]*next-boot\.ts)"/g, "");
  const forbidden = [...allSteps.keys(), ...WORDS].map((word) => new RegExp(`\\b${word}s?\\b`, "i"));
  expect(forbidden.filter((word) => word.test(text)).map(String)).toEqual([]);
});
