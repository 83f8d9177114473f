import { describe, expect, test } from "vitest";
import { aMachine, anSsh, benchOf, exited, fakeSystem, unreachable } from "../../../../test/support/runs/step-bench.ts";
import { aCall } from "../../../capabilities/conformance/device-bench.ts";
import type { RemoteScript } from "../../../capabilities/remote-exec.ts";
import type { Machine } from "../../../lifecycles/machine/machine.ts";
import type { ProbeReport } from "../../model/step.ts";
import { type DetachedScript, startDetached } from "./detached-script.ts";
import { digestOf } from "./runbooks.ts";

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
    const { run, asked } = machineWith("absent");
    for (const env of [{ MILLWRIGHT_MARK: "x" }, { a: "x", BASH_ENV: "$(reboot)" }]) {
      const payload = { script_ref: "check.sh", args: env };
      expect(() => benchOf("ssh", payload, { exec: { run } }, { scripts })).toThrow("choose another name");
      // As a plan has it that was made before there was the rule.
      const script = { mark: "m1", exec: { run }, ssh: anSsh, call: aCall() } as unknown as DetachedScript;
      await expect(startDetached(script, { text: "", env })).rejects.toMatchObject({ disposition: "fail" });
    }
    expect(asked).toEqual([]);
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
    let isWritten = true;
    const run = async (target: unknown, script: RemoteScript) => machineWith("running", written).run(target, script);
    const bench = benchOf(
      "ssh",
      { script_ref: "check.sh" },
      { exec: { run } },
      { scripts, isWritten: () => isWritten },
    );
    const own = { ...evidence, mark: "not written" };
    await bench.probe(own);
    isWritten = false;
    written += "two\n";
    await bench.probe(own); // the database is away: nothing of this pass is kept
    written += "three\n";
    await bench.probe(own);
    expect(bench.log).toEqual(["one\n", "two\n", "two\nthree\n"]);
  });
});

describe("what a script wrote", () => {
  const probing = (answer: (script: RemoteScript) => ReturnType<typeof exited>, isWritten?: () => boolean) =>
    benchOf(
      "ssh",
      { script_ref: "check.sh" },
      { exec: { run: async (_target: unknown, script: RemoteScript) => answer(script) } },
      { scripts, ...(isWritten && { isWritten }) },
    );
  /** A machine with a script in this state that has written this so far; a read may break off after so many bytes. */
  const writing = (now: () => { state: string; bytes: Buffer; breaksAfter?: number }) => (script: RemoteScript) => {
    const { state, bytes, breaksAfter } = now();
    if (!script.script.includes("MILLWRIGHT_FROM")) return exited(0, `${state}\n`);
    if (script.env.MILLWRIGHT_STREAM !== "stdout") return exited(0);
    const rest = bytes.subarray(Number(script.env.MILLWRIGHT_FROM));
    script.onOutput?.(rest.subarray(0, breaksAfter ?? rest.length), "stdout");
    return breaksAfter === undefined ? exited(0) : unreachable();
  };

  test("is passed on byte for byte: nothing is added where a read ended, and no character is split", async () => {
    const whole = Buffer.from("Progress: 10% 20%\ncafé 🚀 fini");
    let end = 0;
    const bench = probing(
      writing(() => ({ state: end < whole.length ? "running" : "ended 0", bytes: whole.subarray(0, end) })),
    );
    for (end = 1; end <= whole.length; end += 1) await bench.probe({ ...evidence, mark: "bytes" });
    expect(bench.log.join("")).toBe(whole.toString());
    expect(bench.log.filter((piece) => piece.includes("\u{fffd}"))).toEqual([]);
  });

  test("and is no text is passed on all the same, once the script has ended", async () => {
    const bytes = Buffer.from([0x61, 0xff, 0xfe, 0xc3]);
    const bench = probing(writing(() => ({ state: "ended 0", bytes })));
    await bench.probe({ ...evidence, mark: "no text" });
    expect(bench.log.join("")).toBe(bytes.toString());
  });

  test("is not said twice when the machine is lost in the middle of it", async () => {
    let breaksAfter: number | undefined = 5;
    const bytes = Buffer.from("first second\n");
    const bench = probing(
      writing(() => ({ state: "running", bytes, ...(breaksAfter !== undefined && { breaksAfter }) })),
    );
    const own = { ...evidence, mark: "lost" };
    expect(await bench.probe(own)).toMatchObject({ state: "unknown" });
    breaksAfter = undefined;
    await bench.probe(own);
    expect(bench.log).toEqual(["first", " second\n"]);
  });

  test("last is said again when the end was not written, and nothing of what was", async () => {
    let isWritten = true;
    let bytes = Buffer.from("one\n");
    let state = "running";
    const bench = probing(
      writing(() => ({ state, bytes })),
      () => isWritten,
    );
    const own = { ...evidence, mark: "end not written" };
    await bench.probe(own);
    isWritten = false;
    bytes = Buffer.from("one\ntwo\n");
    state = "ended 0";
    await bench.probe(own);
    await bench.probe(own);
    expect(bench.log).toEqual(["one\n", "two\n", "two\n"]);
  });
});

test.each([
  ["shipped", true],
  ["site", undefined],
] as const)("a script of origin %s has the rights of root: %s", async (origin, asRoot) => {
  const asked: unknown[] = [];
  const run = async (_ssh: unknown, script: { readonly asRoot?: true }) => {
    asked.push(script.asRoot);
    return exited(0);
  };
  const script = async (ref: string) => ({ ref, digest: "sha256:1", text: "true\n", origin });
  const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { targets: { script } });
  await bench.act(await bench.before());
  expect(asked).toEqual([asRoot]);
});

describe("a script that is undone", () => {
  test.each([
    [3, "still running"],
    [1, "exit code 1"],
  ])("and cannot be ended (%d) is not said to have been: %s", async (code, why) => {
    const run = async () => exited(code);
    const bench = benchOf("ssh", { script_ref: "check.sh" }, { exec: { run } }, { scripts });
    await expect(bench.undo(evidence)).rejects.toMatchObject({
      disposition: "retry",
      message: expect.stringContaining(why),
    });
  });
});

describe("a join", () => {
  const node = {
    name: "n1",
    uid: "u1",
    ready: false,
    reason: "starting",
    unschedulable: false,
    cordonedByUs: false,
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

  test.each(["join", "verify"])(
    "by %s tells the system UUID of a machine without a BMC, and leaves that of others to it",
    async (kind) => {
      const ready = { ...node, ready: true };
      const factsOf = async (spec: Partial<Machine["spec"]>) => {
        const report = await benchOf(kind, {}, can("ended 0", ready), { machine: aMachine(spec) }).probe(joinEvidence);
        return (report as ProbeReport).facts;
      };
      expect(await factsOf({ bmc: null })).toMatchObject({ systemUuid: "uuid-1" });
      expect(await factsOf({})).not.toHaveProperty("systemUuid");
    },
  );

  test("that ends with another exit code than 0 fails the attempt", async () => {
    await expect(benchOf("join", {}, can("ended 1", node)).probe(joinEvidence)).rejects.toMatchObject({
      disposition: "retry",
    });
  });

  test("under which the machine booted again fails the attempt", async () => {
    const before = { ...joinEvidence, bootId: "b0" };
    await expect(benchOf("join", {}, can("cut_off", undefined)).probe(before)).rejects.toThrow(
      "the machine rebooted during kubeadm join",
    );
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

    test("and is cordoned: ours is for the machine to give back, and somebody else's stays", async () => {
      const cordoned = { ...node, ready: true, unschedulable: true };
      expect(await verified({ ...cordoned, cordonedByUs: true })).toMatchObject({
        message: expect.stringContaining("still cordoned by Millwright"),
        facts: { joinedCluster: "c1", cordoned: { cluster: "c1", node: "" } },
      });
      const { message, facts } = await verified(cordoned);
      expect(message).toContain("not by Millwright, and stays so (kubectl uncordon n1)");
      expect(facts).toEqual({ joinedCluster: "c1" });
    });

    test("and is then known to be in its cluster", async () => {
      expect(await verified({ ...node, ready: true })).toMatchObject({
        conditions: [{ type: "InCustomerCluster", status: true }],
      });
    });
  });
});
