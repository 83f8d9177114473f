import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fingerprintOf } from "../../capabilities/host-key.ts";
import { describeHostKey, isPinnedKey } from "./host-key.ts";
import { scriptWithVariables } from "./script-text.ts";

describe("the variables of a script", () => {
  test("reach it as they are, whatever they contain", () => {
    const values = fc.sample(
      fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")),
      { numRuns: 30, seed: 1 },
    );
    for (const value of [...values, 'it\'s $HOME `id` "$(reboot)"\n\\']) {
      const said = execFileSync("sh", ["-s"], { input: scriptWithVariables('printf %s "$V"', { V: value }) });
      expect(said.toString("utf8")).toBe(Buffer.from(value).toString("utf8"));
    }
  });

  test.each(["", "A B", "A;reboot", "1A", "A=B"])("cannot be named %j", (name) => {
    expect(() => scriptWithVariables("", { [name]: "x" })).toThrow("cannot name a variable");
  });
});

describe("a host key", () => {
  const blob = Buffer.concat([Buffer.from([0, 0, 0, 11]), Buffer.from("ssh-ed25519"), Buffer.alloc(36, 7)]);

  test("is described as in known_hosts, and found to be the pinned one with or without a comment", () => {
    const text = describeHostKey(blob);
    expect(text).toMatch(/^ssh-ed25519 AAAA/);
    expect(isPinnedKey(text, blob)).toBe(true);
    expect(isPinnedKey(`${text} root@host`, blob)).toBe(true);
    expect(fingerprintOf(text)).toBe(fingerprintOf(blob));
    expect(isPinnedKey(fingerprintOf(blob), blob)).toBe(true);
  });

  test.each(["", "ssh-ed25519", "ssh-ed25519 AAAA", "SHA256:", `SHA256:${"A".repeat(43)}`])(
    "is not the pinned one when %j is pinned",
    (pinned) => {
      expect(isPinnedKey(pinned, blob)).toBe(false);
    },
  );
});
