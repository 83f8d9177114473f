import { describe, expect, test } from "vitest";
import { aFleetNode } from "../../../../../test/support/fleet/fleet-node.ts";
import { readProbe } from "../../../model/step.ts";
import { powerOffMaasNode, releaseMaasNode, removeMaasRecord } from "./leave-maas.ts";

type Context = Parameters<typeof releaseMaasNode.probe>[0];

/** A context in which MAAS shows a machine of this status; null: none. */
function contextWith(
  machine: object | null,
  more: object = {},
  retainsMachines = false,
): { context: Context; asked: string[] } {
  const asked: string[] = [];
  const known = machine && {
    systemId: "abc",
    hostname: "gpu-1",
    statusName: "shown so",
    power: "off",
    errorDescription: null,
    ...machine,
  };
  const maas = {
    findMachine: async () => known ?? undefined,
    release: async (_: unknown, id: string, { erase }: { erase: boolean }) =>
      asked.push(`release ${id} erase=${erase}`),
    powerOff: async () => asked.push("power_off"),
    deleteMachine: async () => asked.push("delete"),
  };
  const context = {
    payload: { mode: "full_decommission", isManual: false, fallsBackToNoErase: false },
    target: { ...aFleetNode("removing"), facts: { ...aFleetNode("removing").facts, systemId: "abc" } },
    maas: async () => ({ maas, target: {}, retainsMachines }),
    receipt: null,
    actingAt: null,
    ...more,
  };
  return { context: context as unknown as Context, asked };
}
const tried = { receipt: { erase: true }, actingAt: new Date(0) };

describe("the release of a machine", () => {
  test.each([
    [4, "done"],
    [0, "done"],
    [6, "not_done"],
    [10, "not_done"],
    [9, "not_done"],
    [11, "not_done"],
    [8, "not_done"],
    [12, "in_progress"],
    [14, "in_progress"],
  ])("at status %i is %s", async (status, state) => {
    expect(readProbe(await releaseMaasNode.probe(contextWith({ status }).context)).state).toBe(state);
  });

  test("that this job has not seen through says that nobody knows of the disks", async () => {
    const messageOf = async (more: object) =>
      readProbe(await releaseMaasNode.probe(contextWith({ status: 4 }, more).context)).message;
    expect(await messageOf({})).toContain("nobody knows whether its disks were erased");
    expect(await messageOf(tried)).not.toContain("erased");
  });

  test("of a machine that is gone is done, unless it is to be installed again", async () => {
    expect(readProbe(await releaseMaasNode.probe(contextWith(null).context)).state).toBe("done");
    const reimage = { payload: { mode: "reimage", isManual: false, fallsBackToNoErase: false } };
    await expect(releaseMaasNode.probe(contextWith(null, reimage).context)).rejects.toMatchObject({
      code: "machine_deleted_in_maas",
    });
  });

  test.each([
    [15, "erase_failed", "intervene"],
    [13, "release_failed", "fail"],
  ])(
    "that ended in status %i by our order has failed, and before it, it is tried",
    async (status, code, disposition) => {
      expect(readProbe(await releaseMaasNode.probe(contextWith({ status }).context)).state).toBe("not_done");
      await expect(releaseMaasNode.probe(contextWith({ status }, tried).context)).rejects.toMatchObject({
        code,
        disposition,
      });
    },
  );

  test("goes on without erasing where the profile says so, once", async () => {
    const falls = { payload: { mode: "full_decommission", isManual: false, fallsBackToNoErase: true }, ...tried };
    const { context, asked } = contextWith({ status: 15 }, falls);
    expect(readProbe(await releaseMaasNode.probe(context)).state).toBe("halfway");
    expect(await releaseMaasNode.carryOn?.(context)).toEqual({ receipt: { erase: false } });
    expect(asked).toEqual(["release abc erase=false"]);
    const after = contextWith({ status: 15 }, { ...falls, receipt: { erase: false } });
    expect(readProbe(await releaseMaasNode.probe(after.context)).state).toBe("in_progress");
  });

  test.each([3, 7, 16, 99])("of a machine in status %i takes a person", async (status) => {
    await expect(releaseMaasNode.probe(contextWith({ status }).context)).rejects.toMatchObject({
      code: "machine_not_usable",
      disposition: "intervene",
    });
  });
});

test("a machine is off when MAAS shows it off, and not when that is unknown", async () => {
  const shown = async (power: string, more = {}) =>
    readProbe(await powerOffMaasNode.probe(contextWith({ status: 4, power }, more).context as never)).state;
  expect([await shown("off"), await shown("on"), await shown("unknown")]).toEqual(["done", "not_done", "not_done"]);
  expect(await shown("on", tried)).toBe("in_progress");
});

test("a machine stays in MAAS where its site keeps machines", async () => {
  const kept = contextWith({ status: 4 }, {}, true);
  expect(readProbe(await removeMaasRecord.probe(kept.context as never)).state).toBe("done");
  await removeMaasRecord.act(kept.context as never);
  expect(kept.asked).toEqual([]);
  const removed = contextWith({ status: 4 });
  expect(readProbe(await removeMaasRecord.probe(removed.context as never)).state).toBe("not_done");
  await removeMaasRecord.act(removed.context as never);
  expect(removed.asked).toEqual(["delete"]);
});
