import { describe, expect, test } from "vitest";
import { CAUSES, type Cause, type CauseCode, type Peer } from "../../kernel/causes.ts";
import { isWrongNow, nameTrouble, troubleOf } from "./causes.ts";

const named = (code: CauseCode, at?: Peer): string =>
  nameTrouble(troubleOf("as it was told", { code, ...(at && { facts: { at } }) }));

describe("a cause", () => {
  // biome-ignore format: a table is read by its columns
  test.each<[CauseCode, Peer | undefined, string]>([
    ["unreachable",          "bmc",       "its BMC cannot be reached"],
    ["unreachable",          "ssh",       "the machine does not answer over SSH"],
    ["unreachable",          "jump_host", "a jump host on the way to the machine does not answer"],
    ["unreachable",          "cluster",   "the cluster's API does not answer"],
    ["timed_out",            "bmc",       "its BMC takes connections and does not answer in time: it is slow, overloaded or hangs"],
    ["credentials_rejected", "ssh",       "SSH on the machine refuses the user or the key"],
    ["credentials_rejected", "cluster",   "the cluster refuses the kubeconfig"],
    ["wrong_identity",       "bmc",       "another device answers at its address: the serial number is wrong"],
    ["script_failed",        undefined,   "a script failed on the machine"],
    ["no_effect",            "bmc",       "its BMC accepts the command, and nothing changes"],
  ])("%s at %s is named: %s", (code, at, words) => {
    expect(named(code, at)).toBe(words);
  });

  test("of which nobody said who failed is named as a BMC's", () => {
    expect(named("unreachable")).toBe("its BMC cannot be reached");
  });

  test("that has no words of its own, or is none, is told in those of its message", () => {
    expect(named("not_done_in_time")).toBe("as it was told");
    expect(named("unknown")).toBe("as it was told");
    expect(named("protocol", "ssh")).toBe("as it was told");
    expect(nameTrouble(troubleOf("as it was told", null))).toBe("as it was told");
  });

  test("is never named by nothing", () => {
    for (const code of Object.keys(CAUSES) as CauseCode[])
      for (const at of ["bmc", "ssh", "jump_host", "cluster", undefined] as const) expect(named(code, at)).not.toBe("");
  });

  test("that shows only once the time is over is not wrong before", () => {
    const wrong = (code: CauseCode): boolean => isWrongNow({ code } satisfies Cause);
    expect([wrong("no_effect"), wrong("install_failed"), wrong("unreachable"), wrong("meter_contradicts")]).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(isWrongNow(null)).toBe(false);
  });
});
