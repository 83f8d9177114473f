import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { causeOfExit, describeRunbook, digestOf, Runbooks } from "./runbooks.ts";

describe("a script's header", () => {
  test.each([
    ["#!/bin/sh\n# Does it.\n# Variables: a (1), b\nset -eu\n# more\n", "Does it.", "a (1), b"],
    ["#!/bin/sh\n# Does it, and\n# then more.\n\n# Variables: none of these\n", "Does it, and then more.", ""],
    ["# Without interpreter. Variables: x\n#  and y", "Without interpreter.", "x and y"],
    ["echo nothing said\n", "", ""],
    ["---\n# Sets it.\n# Variables: release\n# Idempotent: yes\n- hosts: all\n", "Sets it.", "release"],
    ["", "", ""],
  ])("of %j says what it does: %j, with %j", (text, description, variables) => {
    expect(describeRunbook({ text })).toEqual({ description, variables });
  });
});

test("a site's script takes the place of a shipped one, and shows that it is the site's", () => {
  const runbooks = new Runbooks({ "a.sh": "1", "b.sh": "2" }, { "b.sh": "3" });
  expect(runbooks.refs.map((ref) => runbooks.find(ref))).toMatchObject([
    { ref: "a.sh", text: "1", origin: "shipped" },
    { ref: "b.sh", text: "3", origin: "site" },
  ]);
});

test("scripts that are read again are the new ones by name, and the old ones by digest", () => {
  let site: Record<string, string> = { "a.sh": "1", "b.sh": "2" };
  const runbooks = new Runbooks({}, () => site);
  const old = runbooks.find("a.sh");
  site = { "a.sh": "3" };
  expect(runbooks.find("a.sh")).toBe(old);
  runbooks.refresh();
  expect(runbooks.find("a.sh")?.text).toBe("3");
  expect(runbooks.refs).toEqual(["a.sh"]);
  expect(runbooks.findVersion("a.sh", old?.digest ?? "")?.text).toBe("1");
  site = { "not a name": "" };
  expect(() => runbooks.refresh()).toThrow("not the name of a script");
  expect(runbooks.find("a.sh")?.text).toBe("3");
});

test("a shipped script of an earlier version is found by its digest alone", () => {
  const runbooks = new Runbooks({ "a.sh": "new" }, {}, [["a.sh", "old"]]);
  expect(runbooks.find("a.sh")?.text).toBe("new");
  expect(runbooks.refs).toEqual(["a.sh"]);
  expect(runbooks.findVersion("a.sh", digestOf("old"))?.text).toBe("old");
});

describe("how a script ended", () => {
  const text = "#!/bin/sh\n# Checks.\n# Exit codes: 75 not_drained, 76 of_the_moon\n# Variables: force\nexit 75\n";

  test("says why, where its top names the exit code; else only that it failed", () => {
    expect(causeOfExit({ text }, 75)).toBe("not_drained");
    expect(causeOfExit({ text }, 1)).toBe("script_failed");
    expect(causeOfExit({ text }, 76)).toBe("script_failed");
    expect(causeOfExit({ text: "exit 75\n" }, 75)).toBe("script_failed");
  });

  test("says why for the shipped drain check, which is the same script as in the versions before", () => {
    const drainCheck = { text: readFileSync("runbooks/drain_check.sh", "utf8") };
    expect(causeOfExit(drainCheck, 1)).toBe("not_drained");
    expect(causeOfExit(drainCheck, 2)).toBe("script_failed");
  });

  test("is no part of what the script is said to do, or takes", () => {
    expect(describeRunbook({ text })).toEqual({ description: "Checks.", variables: "force" });
  });
});
