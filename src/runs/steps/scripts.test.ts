import { describe, expect, test } from "vitest";
import type { RemoteScript } from "../../capabilities/remote-exec.ts";
import { digestOf } from "../runbooks.ts";
import { benchOf, exited, fakeSystem, unreachable } from "./step-bench.ts";

const scripts = { "check.sh": "echo checked\n" };
const evidence = { mark: "m1", script: digestOf(scripts["check.sh"]) };

/** A machine that answers to what is asked about a script as the test says. */
function machineWith(state: string, stdout = "") {
  const asked: RemoteScript[] = [];
  const run = async (_target: unknown, script: RemoteScript) => {
    asked.push(script);
    if (script.script.includes("MILLWRIGHT_FROM")) {
      const text = Buffer.from(stdout).subarray(Number(script.env.MILLWRIGHT_FROM));
      if (script.env.MILLWRIGHT_STREAM === "stdout" && text.length > 0) script.onOutput?.(text, "stdout");
      return exited(0);
    }
    return exited(0, script.script.includes("echo absent") ? `${state}\n` : "");
  };
  return { asked, run };
}

describe("a script", () => {
  test.each([
    ["absent", "not_done"],
    ["running", "in_progress"],
    ["ended 0", "done"],
  ])("that the machine calls %s is %s", async (state, expected) => {
    const { run } = machineWith(state);
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { scripts });
    expect(await bench.probe(evidence)).toMatchObject({ state: expected });
  });

  test.each([
    ["ended 7", "check.sh ended with exit code 7"],
    ["cut_off", "check.sh was cut off"],
  ])("that the machine calls %s fails the attempt: %s", async (state, message) => {
    const { run } = machineWith(state);
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { scripts });
    await expect(bench.probe(evidence)).rejects.toMatchObject({
      disposition: "retry",
      message: expect.stringContaining(message),
    });
  });

  test("on a machine that does not answer is unknown, and never a failure", async () => {
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run: async () => unreachable() } }, { scripts });
    expect(await bench.probe(evidence)).toMatchObject({ state: "unknown" });
  });

  test("is what it was when the run began, or does not run", async () => {
    const { run, asked } = machineWith("absent");
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { scripts });
    await expect(bench.act({ ...evidence, script: "sha256:old" })).rejects.toMatchObject({ disposition: "fail" });
    expect(asked).toEqual([]);
  });

  test("gets its arguments as variables, and itself too, so that no shell text is made of either", async () => {
    const { run, asked } = machineWith("absent");
    const args = { force: "'; reboot; '" };
    const bench = benchOf("ssh", { script_ref: "check.sh", args }, { exec: { run } }, { scripts });
    await bench.act(evidence);
    expect(asked[0]?.env).toMatchObject({ ...args, MILLWRIGHT_SCRIPT: scripts["check.sh"], MILLWRIGHT_MARK: "m1" });
    expect(asked[0]?.script).not.toContain("reboot");
  });

  test("cannot be given the variables that are ours", async () => {
    const { run } = machineWith("absent");
    const bench = benchOf(
      "ssh",
      { script_ref: "check.sh", args: { MILLWRIGHT_MARK: "x" } },
      { exec: { run } },
      { scripts },
    );
    await expect(bench.act(evidence)).rejects.toMatchObject({ disposition: "fail" });
  });

  test("is heard of as it goes on, each part once", async () => {
    let written = "one\n";
    const run = async (target: unknown, script: RemoteScript) => machineWith("running", written).run(target, script);
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { scripts });
    const own = { ...evidence, mark: "heard" };
    await bench.probe(own);
    written += "two\n";
    await bench.probe(own);
    await bench.probe(own);
    expect(bench.log).toEqual(["one\n", "two\n"]);
  });

  test("is heard of again when what was heard of it was not written", async () => {
    let written = "one\n";
    let basis = 1;
    const run = async (target: unknown, script: RemoteScript) => machineWith("running", written).run(target, script);
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { scripts, basis: () => basis });
    const own = { ...evidence, mark: "not written" };
    await bench.probe(own);
    basis = 2;
    written += "two\n";
    await bench.probe(own); // the database is away: nothing of this look is kept
    written += "three\n";
    await bench.probe(own);
    expect(bench.log).toEqual(["one\n", "two\n", "two\nthree\n"]);
  });
});

describe("a join", () => {
  const node = {
    name: "n1",
    uid: "u1",
    ready: false,
    reason: "starting",
    unschedulable: false,
    systemUuid: "uuid-1",
    bootId: "b1" as string | null,
    kubeletVersion: null,
    matchedBy: "system_uuid" as const,
  };
  const joinEvidence = { mark: "j1", bootId: "b1", systemUuid: "uuid-1", serial: "S1", addresses: ["10.0.0.2"] };
  const can = (state: string, found: typeof node | undefined | "silent") => ({
    exec: { ...fakeSystem(() => ({ "/proc/sys/kernel/random/boot_id": "b1\n" })), run: machineWith(state).run },
    cluster: { findNode: async () => (found === "silent" ? unreachable() : found) },
  });

  test.each([
    ["absent", undefined, "not_done"],
    ["running", undefined, "in_progress"],
    ["ended 0", undefined, "in_progress"],
    ["ended 0", { ...node, bootId: "b0" }, "in_progress"],
    ["ended 0", "silent", "unknown"],
    ["ended 0", node, "done"],
    ["ended 0", { ...node, bootId: null }, "done"],
    ["cut_off", node, "done"],
    ["cut_off", undefined, "in_progress"],
  ] as const)("that is %s, with node %j, is %s", async (state, found, expected) => {
    expect(await benchOf("join", {}, can(state, found)).probe(joinEvidence)).toMatchObject({ state: expected });
  });

  test("that ends with another exit code than 0 fails the attempt", async () => {
    await expect(benchOf("join", {}, can("ended 1", node)).probe(joinEvidence)).rejects.toMatchObject({
      disposition: "retry",
    });
  });

  test("under which the machine booted anew fails the attempt", async () => {
    const before = { ...joinEvidence, bootId: "b0" };
    await expect(benchOf("join", {}, can("cut_off", undefined)).probe(before)).rejects.toThrow("booted anew");
    expect(await benchOf("join", {}, can("cut_off", node)).probe(before)).toMatchObject({ state: "done" });
  });

  test("hands the join material over as variables and keeps the token out of the log", async () => {
    const machine = machineWith("absent");
    const minted = {
      endpoint: "c1:6443",
      token: "abcdef.0123456789abcdef",
      caCertHash: "sha256:ff",
      expiresAt: new Date(),
    };
    const bench = benchOf("join", {}, { exec: { run: machine.run }, cluster: { mintJoin: async () => minted } });
    await bench.act(joinEvidence);
    expect(machine.asked[0]?.env).toMatchObject({
      JOIN_ENDPOINT: "c1:6443",
      JOIN_TOKEN: minted.token,
      JOIN_CA_HASH: "sha256:ff",
    });
    expect(machine.asked[0]?.script).not.toContain(minted.token);
    expect(bench.log.join("")).not.toContain(minted.token);
  });

  describe("is verified", () => {
    const verified = (found: typeof node | undefined | "silent") =>
      benchOf("verify", {}, can("absent", found)).probe({ systemUuid: "uuid-1", serial: null, addresses: [] });

    test.each([
      [undefined, "in_progress"],
      [node, "in_progress"],
      [{ ...node, ready: true, bootId: "b0" }, "in_progress"],
      ["silent", "unknown"],
      [{ ...node, ready: true }, "done"],
    ] as const)("with node %j: %s", async (found, expected) => {
      expect(await verified(found)).toMatchObject({ state: expected });
    });

    test("and is then known to be in its cluster", async () => {
      expect(await verified({ ...node, ready: true })).toMatchObject({
        conditions: [{ type: "InCustomerCluster", status: true }],
      });
    });
  });
});
