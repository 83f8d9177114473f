import { describe, expect, test } from "vitest";
import type { RemoteScript } from "../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { anSsh, benchOf, exited, unreachable } from "./step-bench.ts";

const evidence = { mark: "n1" };

/** What the machine says about the change at each address where it answers; notes are what it was told there. */
function machineAt(states: Readonly<Record<string, string>>) {
  const notes: string[] = [];
  const run = async ({ address }: SshTarget, script: RemoteScript) => {
    const state = states[address];
    if (state === undefined) return unreachable();
    if (script.env.MILLWRIGHT_NOTE !== undefined) notes.push(address);
    return exited(0, script.script.includes("echo absent") ? `${state}\n` : "");
  };
  return { notes, exec: { run } };
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
    ["ended 9", "retry", "taken back"],
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

    test("that was taken back is found out at the old one", async () => {
      const { exec } = machineAt({ [anSsh.address]: "ended 9" });
      await expect(benchOf("net", { params }, { exec }).probe(evidence)).rejects.toThrow("taken back");
    });

    test("is unknown while the machine answers nowhere", async () => {
      const { exec } = machineAt({});
      expect(await benchOf("net", { params }, { exec }).probe(evidence)).toMatchObject({ state: "unknown" });
    });
  });

  test.each([
    [{ vlan: "7" }, "params.vlan"],
    [{ action: "destroy" }, "params.action"],
    [{ ssh_address: "10.0.0.9:22; reboot" }, "params.ssh_address"],
    [{ rollback_seconds: "0" }, "params.rollback_seconds"],
  ])("with %j is refused, naming the field", (params, field) => {
    expect(() => benchOf("net", { params }, {})).toThrow(field);
  });
});
