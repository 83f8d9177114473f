import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { BUILT_IN_PLANS } from "../plans/built-in.ts";
import { allSteps } from "./index.ts";

const folder = join(import.meta.dirname, "../../../runbooks");
const shipped = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".sh"));

test("what is undone over SSH alone is inside the system, and what is undone at the BMC is not", () => {
  const undone = [...allSteps.values()].filter(({ undo }) => undo !== undefined);
  const inside = undone.filter(({ insideSystem }) => insideSystem).map(({ kind }) => kind);
  expect(inside.toSorted()).toEqual(["join", "net", "ssh"]);
  expect(undone.map(({ kind }) => kind).toSorted()).toEqual(["join", "net", "netboot", "repave", "ssh"]);
});

describe("the scripts that come along", () => {
  test("are all that the built-in plans name", () => {
    const named = BUILT_IN_PLANS.flatMap(({ steps }) => steps).flatMap(({ kind, payload }) => {
      const step = allSteps.get(kind ?? "");
      return step === undefined ? [] : step.refersTo(step.parse(payload, ""));
    });
    const scripts = named.filter((reference) => reference.kind === "script").map(({ ref }) => ref);
    expect(scripts.length).toBeGreaterThan(0);
    expect(shipped).toEqual(expect.arrayContaining(scripts));
  });

  test.each(shipped)("%s is a script that the plainest shell understands, and stops at the first failure", (name) => {
    execFileSync("sh", ["-n", join(folder, name)]);
    expect(readFileSync(join(folder, name), "utf8")).toMatch(/^set -eu$/m);
  });
});
