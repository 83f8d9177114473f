import { describe, expect, test, vi } from "vitest";
import { aMachine, anSsh, benchOf, exited, unreachable } from "../../../test/support/runs/step-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { RemoteScript } from "../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { validatePlan } from "../model/plan/plan.ts";
import { resolvePlan } from "../model/plan/resolve-plan.ts";
import { machineTarget } from "../targets/machine.ts";
import { allSteps } from "./index.ts";

const evidence = { mark: "n1" };

/** What the machine says about the change at each address where it answers; notes are what it was told there. */
function machineAt(states: Readonly<Record<string, string>>) {
  const notes: string[] = [];
  const stopped: string[] = [];
  const run = async ({ address }: SshTarget, script: RemoteScript) => {
    const state = states[address];
    if (state === undefined) return unreachable();
    if (script.env.MILLWRIGHT_NOTE !== undefined) notes.push(address);
    if (script.script.includes("/stop")) stopped.push(address);
    return exited(0, script.script.includes("echo absent") ? `${state}\n` : "");
  };
  return { notes, stopped, exec: { run } };
}

describe("a network change", () => {
  test.each([
    ["absent", "not_done", []],
    ["running", "in_progress", [anSsh.address]],
    ["ended 0", "done", []],
  ])("that the machine calls %s is %s, and is confirmed at %j", async (state, expected, told) => {
    const { exec, notes } = machineAt({ [anSsh.address]: state });
    expect(await benchOf("net", { params: { action: "reconfigure" } }, { exec }).probe(evidence)).toMatchObject({
      state: expected,
    });
    expect(notes).toEqual(told);
  });

  test.each([
    ["ended 9", "retry", "reverted"],
    ["ended 2", "retry", "exit code 2"],
    ["cut_off", "intervene", "went down"],
  ])("that the machine calls %s fails with %s: %s", async (state, disposition, message) => {
    const { exec } = machineAt({ [anSsh.address]: state });
    await expect(benchOf("net", { params: { action: "reconfigure" } }, { exec }).probe(evidence)).rejects.toMatchObject(
      {
        disposition,
        message: expect.stringContaining(message),
      },
    );
  });

  describe("to another address", () => {
    const params = { netplan: "network: {}", ssh_address: "10.0.0.9" };

    test("is confirmed from there and never from the old one", async () => {
      const there = machineAt({ "10.0.0.9": "running" });
      await benchOf("net", { params }, { exec: there.exec }).probe(evidence);
      expect(there.notes).toEqual(["10.0.0.9"]);
      const here = machineAt({ [anSsh.address]: "running" });
      expect(await benchOf("net", { params }, { exec: here.exec }).probe(evidence)).toMatchObject({
        state: "in_progress",
      });
      expect(here.notes).toEqual([]);
    });

    test("that was reverted is found out at the old one", async () => {
      const { exec } = machineAt({ [anSsh.address]: "ended 9" });
      await expect(benchOf("net", { params }, { exec }).probe(evidence)).rejects.toThrow("was reverted");
    });

    test("is unknown while the machine answers nowhere", async () => {
      const { exec } = machineAt({});
      expect(await benchOf("net", { params }, { exec }).probe(evidence)).toMatchObject({ state: "unknown" });
    });
  });

  describe("that is undone", () => {
    const params = { netplan: "network: {}", ssh_address: "10.0.0.9" };
    const undo = (states: Readonly<Record<string, string>>, signal?: AbortSignal) => {
      const machine = machineAt(states);
      return { ...machine, undone: benchOf("net", { params }, { exec: machine.exec }).undo(evidence, signal) };
    };

    test.each(["ended 9", "ended 3", "ended 143", "absent"])(
      "and of which the machine says %s is reverted",
      async (state) => {
        expect(await undo({ [anSsh.address]: state }).undone).toBeUndefined();
      },
    );

    test("after it was confirmed is in force, and the machine is where it moved to", async () => {
      expect(await undo({ "10.0.0.9": "ended 0" }).undone).toEqual({
        stays: expect.stringMatching(/confirmed before .* reached there from now on: give spec.ssh_endpoint/),
        facts: { sshMoved: { from: anSsh.address, to: "10.0.0.9" } },
      });
    });

    test("says so when somebody else has changed the settings since", async () => {
      expect(await undo({ "10.0.0.9": "ended 10" }).undone).toMatchObject({
        stays: expect.stringContaining("somebody"),
      });
    });

    test.each([
      ["cut_off", "went down"],
      ["ended 11", "could not be reverted"],
    ])("and of which the machine says %s calls for somebody: %s", async (state, why) => {
      await expect(undo({ [anSsh.address]: state }).undone).rejects.toMatchObject({
        disposition: "intervene",
        message: expect.stringContaining(why),
      });
    });

    test("is told at whichever of its addresses answers, although the other one leads nowhere", async () => {
      const machine = machineAt({ [anSsh.address]: "ended 9" });
      const run = (target: SshTarget, script: RemoteScript) =>
        target.address === "10.0.0.9" ? new Promise<never>(() => undefined) : machine.exec.run(target, script);
      expect(await benchOf("net", { params }, { exec: { run } }).undo(evidence)).toBeUndefined();
      expect(machine.stopped).toEqual([anSsh.address]);
    });

    test("is waited for at one address although somebody else answers at the other", async () => {
      const states: Record<string, string> = {};
      const machine = machineAt(states);
      let asked = 0;
      const run = async (target: SshTarget, script: RemoteScript) => {
        if (target.address === "10.0.0.9") throw new DeviceFailure("host_key_changed", "bmc", "another host key");
        asked += 1;
        return machine.exec.run(target, script);
      };
      const undone = benchOf("net", { params }, { exec: { run } }).undo(evidence);
      await vi.waitFor(() => expect(asked).toBeGreaterThan(1), { timeout: 9_000 });
      states[anSsh.address] = "ended 9";
      expect(await undone).toBeUndefined();
    });

    test("is waited for until it has ended", async () => {
      const states = { "10.0.0.9": "running" };
      const { stopped, undone } = undo(states);
      await vi.waitFor(() => expect(stopped.length).toBeGreaterThan(1), { timeout: 9_000 });
      states["10.0.0.9"] = "ended 9";
      expect(await undone).toBeUndefined();
    });

    test("on a machine that answers nowhere is open, and says what the machine does by itself", async () => {
      const stop = new AbortController();
      const { undone } = undo({}, stop.signal);
      stop.abort();
      await expect(undone).rejects.toMatchObject({
        disposition: "retry",
        message: expect.stringContaining("takes the change back by itself within 60 s"),
      });
    });
  });

  test("that is reverted later than its step ends is refused, be it so by the plan or by the run", () => {
    const planned = (timeoutSeconds: number, params: Record<string, string>) =>
      validatePlan(
        { planId: "p", displayName: "", steps: [{ name: "net", kind: "net", timeoutSeconds, payload: { params } }] },
        allSteps,
      );
    expect(() => planned(120, { rollback_seconds: "120" })).toThrow(
      "steps[0].net.params.rollback_seconds: 120 s must be less than the step's timeout of 120 s",
    );
    expect(() => planned(5, { action: "reconfigure" })).toThrow("5 s must be less than the step's timeout of 5 s");
    const plan = planned(120, { rollback_seconds: "119" });
    const start = (params: Record<string, string>) =>
      resolvePlan(plan, { kind: machineTarget, target: aMachine(), params, steps: allSteps });
    expect(() => start({ rollback_seconds: "300" })).toThrow("params.rollback_seconds: 300 s must be less");
    const short = resolvePlan(planned(50, { action: "reconfigure" }), {
      kind: machineTarget,
      target: aMachine(),
      params: {},
      steps: allSteps,
    });
    expect(short.steps[0]?.payload).toEqual({ params: { action: "reconfigure", rollback_seconds: "25" } });
    expect(start({ rollback_seconds: "100" }).steps[0]?.payload).toMatchObject({ params: { rollback_seconds: "100" } });
  });

  test.each([
    [{ vlan: "7" }, "params.vlan"],
    [{ action: "destroy" }, "params.action"],
    [{ ssh_address: "10.0.0.9:22; reboot" }, "params.ssh_address"],
    [{ ssh_address: "10.0.0.9:22" }, "params.ssh_address"],
    [{ ssh_address: "-oProxyCommand" }, "params.ssh_address"],
    [{ rollback_seconds: "0" }, "params.rollback_seconds"],
  ])("with %j is refused, naming the field", (params, field) => {
    expect(() => benchOf("net", { params }, {})).toThrow(field);
  });
});
