import { expect, test } from "vitest";
import { judgeProofs } from "./proofs.ts";

const TESTS = `
  import { describe, expect, test } from "vitest";
  const LONG = process.env.CHAOS_LONG === "1";
  const hasDog = true;
  const ROWS = [refused("an unknown shelf", 404)];

  describe("a shelf", () => {
    test("is found", () => {});
    test.each([["power_on", "on"]])("to %s reads back", (word) => {});
    test.each(ROWS)("$what", () => {});
    test(\`is called \${ROWS}\`, { timeout: 5 }, () => {});
  });
  test.skip("sleeps", () => {});
  test.todo("is to come");
  test.runIf(LONG)("takes an hour", () => {});
  test.skipIf(process.env.CHAOS_LONG !== "1").each([[1]])("takes %i hours", () => {});
  test.skipIf(true)("is off", () => {});
  test("is off by an option", { skip: true }, () => {});
  describe.skipIf(!hasDog)("a dog", () => {
    test("barks", () => {});
  });
  describe.skipIf(!hasDog)(needing("a dog that CI brings", hasDog ? "" : "dog"), () => {
    test("barks there", () => {});
  });
  test("walks", ({ skip }) => {
    if (!hasDog) skip("needs dog");
  });
  test("walks alone", (context) => {
    if (!hasDog) context.skip("it rains");
  });
  test("walks at night", (context) => {
    if (!LONG) context.skip("needs time");
  });
  test("stays at home", (context) => context.skip("needs nothing"));
`;
const FILES = [{ path: "src/dog.test.ts", text: TESTS }];
const SPECIFICATION = "# Dogs\n\n## Barking\n\n### At night\n";

function faultsOf(...proofs: string[]): string[] {
  const rows = proofs.map((proof) => `| It holds | ${proof} |`);
  const text = ["## Barking", "### At night", "| Promise | Proof |", "|---|---|", ...rows, ""].join("\n");
  return judgeProofs({ name: "dog", text, specification: SPECIFICATION }, FILES);
}
const proof = (title: string) => `[dog.test.ts](../../src/dog.test.ts): ${title}`;

test.each([
  "a shelf",
  "is found",
  "to %s reads back",
  "power_on",
  "an unknown shelf",
  `is called \${ROWS}`,
  "a dog that CI brings",
  "barks there",
  "walks",
])("a test that CI runs is a proof: %s", (title) => {
  expect(faultsOf(proof(title))).toEqual([]);
});

test.each([
  ["sleeps", "is never run"],
  ["is to come", "is never run"],
  ["takes an hour", "runs only with CHAOS_LONG"],
  ["takes %i hours", "runs only with CHAOS_LONG"],
  ["is off", "is never run"],
  ["is off by an option", "is never run"],
  ["a dog", "is left out by its condition !hasDog"],
  ["barks", "is left out by its condition !hasDog"],
  ["walks alone", "leaves itself out, and names no counterpart"],
  ["walks at night", "runs only with CHAOS_LONG"],
  ["stays at home", "is never run"],
])("a test that may be skipped in CI is no proof: %s", (title, why) => {
  expect(faultsOf(proof("walks"), proof(title))).toEqual([
    `docs/reference/dog-proofs.md:6 names a test of src/dog.test.ts that ${why}: ${title}`,
  ]);
});

test.each([
  [proof("is lost"), "names a test that is not in src/dog.test.ts: is lost"],
  ["[cat.test.ts](../../src/cat.test.ts): meows", "names a file that is not there: src/cat.test.ts"],
  ["[cat.test.ts](../../src/dog.test.ts): walks", "calls src/dog.test.ts by another name: cat.test.ts"],
  ["[dog.ts](../../src/dog.ts): walks", "names a file that no test run reads: src/dog.ts"],
  ["somebody tried it", "names no test: somebody tried it"],
])("%s proves nothing", (cell, why) => {
  expect(faultsOf(`${proof("walks")}<br>${cell}`)).toEqual([`docs/reference/dog-proofs.md:5 ${why}`]);
});

test("a section of the specification without proofs is named", () => {
  const specification = `${SPECIFICATION}\n## Biting\n`;
  expect(judgeProofs({ name: "dog", text: "## Barking\n### At night\n", specification }, FILES)).toEqual([
    'docs/reference/dog-proofs.md has no section "Biting" of docs/specs/dog.md',
  ]);
});
