import { expect, test } from "vitest";
import { modeText, othersMayReach } from "./private-file.ts";

const ROOT = 0;
const SERVICE = 10_001;

test.each([
  ["ours alone", 0o100600, SERVICE, SERVICE, false],
  ["ours alone, to read", 0o100400, SERVICE, SERVICE, false],
  ["root's for our group, as Kubernetes mounts a Secret", 0o100440, ROOT, SERVICE, false],
  ["root's for our group, as a package installs it", 0o100640, ROOT, SERVICE, false],
  ["root's, and the group may write", 0o100660, ROOT, SERVICE, true],
  ["root's, for everybody", 0o100444, ROOT, SERVICE, true],
  ["ours, and a group may read", 0o100440, SERVICE, SERVICE, true],
  ["somebody else's, for a group", 0o100440, 1_000, SERVICE, true],
  ["root's for a group, and we are root", 0o100440, ROOT, ROOT, true],
  ["for a group, where nobody knows who we are", 0o100440, SERVICE, undefined, true],
])("a file that is %s", (_what, mode, uid, own, expected) => {
  expect(othersMayReach({ mode, uid }, own)).toBe(expected);
});

test("a mode is four digits", () => {
  expect([0o100640, 0o100007].map(modeText)).toEqual(["0640", "0007"]);
});
