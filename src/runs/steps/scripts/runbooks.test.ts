import { describe, expect, test } from "vitest";
import { describeRunbook, Runbooks } from "./runbooks.ts";

describe("a script's header", () => {
  test.each([
    ["#!/bin/sh\n# Does it.\n# Variables: a (1), b\nset -eu\n# more\n", "Does it.", "a (1), b"],
    ["#!/bin/sh\n# Does it, and\n# then more.\n\n# Variables: none of these\n", "Does it, and then more.", ""],
    ["# Without interpreter. Variables: x\n#  and y", "Without interpreter.", "x and y"],
    ["echo nothing said\n", "", ""],
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
