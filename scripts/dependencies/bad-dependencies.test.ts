import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { findBadDependencies, isAllowed } from "./bad-dependencies.ts";
import { type LockedPackage, nameAt, readLockFile, readManifest } from "./lock-file.ts";

const MANIFEST = { name: "millwright", version: "0.0.0", license: "Apache-2.0", description: "" };
const GOOD: LockedPackage = { version: "1.0.0", license: "MIT", integrity: "sha512-abc" };

const judged = (locked: Partial<LockedPackage>, allowScripts: Record<string, boolean> = {}) =>
  findBadDependencies(
    { packages: new Map([["node_modules/left", { ...GOOD, ...locked }]]) },
    {
      ...MANIFEST,
      allowScripts,
    },
  );

describe("what we depend on", () => {
  test("is in order in this checkout", async () => {
    const lock = await readLockFile(root);
    expect(lock.packages.size).toBeGreaterThan(100);
    expect(findBadDependencies(lock, await readManifest(root))).toEqual([]);
  });

  test("may be good", () => expect(judged({})).toEqual([]));

  test.each<[string, Partial<LockedPackage>, RegExp]>([
    ["with a licence that binds what we ship", { license: "GPL-3.0-only" }, /licence GPL-3\.0-only/],
    ["with a licence for tools alone", { license: "MPL-2.0" }, /licence MPL-2\.0/],
    ["with two licences, both of which bind", { license: "MIT AND AGPL-3.0-only" }, /licence MIT AND/],
    ["with no hash", { integrity: undefined as never }, /no integrity hash/],
    ["with a weak hash", { integrity: "sha1-abc" }, /sha1 alone/],
    ["from a place of its own", { resolved: "https://elsewhere.example/left.tgz" }, /where it comes from/],
    ["with a script that nobody decided on", { hasInstallScript: true }, /decide in `allowScripts`/],
  ])("is refused %s", (_, locked, fault) => {
    expect(judged(locked)).toEqual([expect.stringMatching(fault)]);
  });

  test("is refused without a licence, unless a person has read it", () => {
    const { license: _, ...silent } = GOOD;
    const faultsOf = (name: string) =>
      findBadDependencies({ packages: new Map([[`node_modules/${name}`, silent]]) }, MANIFEST);
    expect(faultsOf("left")).toEqual([expect.stringContaining("left@1.0.0 names no licence")]);
    expect(faultsOf("ssh2")).toEqual([]);
  });

  test("may hold tools under weaker terms, which are not shipped", () => {
    expect(judged({ license: "MPL-2.0", dev: true })).toEqual([]);
  });

  test.each([true, false])("may have a script that was decided on: %s", (decision) => {
    expect(judged({ hasInstallScript: true }, { left: decision })).toEqual([]);
  });

  test("is all that allowScripts may name", () => {
    expect(judged({}, { right: true })).toEqual([expect.stringContaining("allowScripts names right")]);
  });
});

describe("an expression of licences", () => {
  const allowed = new Set(["A", "B"]);
  test.each([
    ["A", true],
    ["X", false],
    ["(A)", true],
    ["A OR X", true],
    ["X OR A", true],
    ["A AND X", false],
    ["A AND B", true],
    ["(A AND X) OR B", true],
    ["A AND (X OR B)", true],
    ["A AND X OR B", true],
    ["A OR B AND X", true],
    ["(A OR B) AND X", false],
  ])("%s: %s", (expression, expected) => {
    expect(isAllowed(expression, allowed)).toBe(expected);
  });

  test("is never allowed where it makes no sense", () => {
    const words = fc
      .array(fc.constantFrom("A", "X", "(", ")", "AND", "OR"), { maxLength: 6 })
      .map((all) => all.join(" "));
    fc.assert(fc.property(words, (text) => text.includes("A") || !isAllowed(text, allowed)));
    for (const broken of ["", "A B", "(A", "A)", "A OR", "AND A", "()"]) expect(isAllowed(broken, allowed)).toBe(false);
  });
});

test("a package is named by the end of its place", () => {
  expect(nameAt("node_modules/a/node_modules/@b/c")).toBe("@b/c");
});
