import { describe, expect, test } from "vitest";
import { aFleetNode } from "../../../../../test/support/fleet/fleet-node.ts";
import { createOrFindInMaas } from "./create-or-find-in-maas.ts";

type Context = Parameters<typeof createOrFindInMaas.probe>[0];

const NEW = 0;
const READY = 4;
const aMachine = (systemId: string, more: object = {}) => ({
  ...{ systemId, hostname: "enlisted-node", status: NEW, statusName: "New", power: "off", powerType: null },
  ...{ serial: null, isLocked: false, errorDescription: null },
  ...more,
});
type Machine = ReturnType<typeof aMachine>;

/** A region with these machines, and what it was told. */
function region(...machines: Machine[]) {
  const known = new Map(machines.map((machine) => [machine.systemId, machine]));
  const told: string[] = [];
  const bindings = new Map<string, string>();
  const maas = {
    findMachine: async (_: unknown, id: string) => known.get(id),
    listMachines: async (_: unknown, { hostname, mac }: { hostname?: string; mac?: string }) =>
      mac !== undefined
        ? []
        : [...known.values()].filter((each) => hostname === undefined || each.hostname === hostname),
    takeOver: async (_: unknown, id: string, { hostname }: { hostname: string }) => {
      told.push(`${id} is ${hostname}`);
      known.set(id, { ...(known.get(id) as Machine), hostname, powerType: "ipmi" as never });
    },
    createMachine: async (_: unknown, { hostname }: { hostname: string }) => {
      told.push(`create ${hostname}`);
      known.set("made", aMachine("made", { hostname, powerType: "ipmi" }));
      return known.get("made");
    },
    deleteMachine: async (_: unknown, id: string) => {
      told.push(`delete ${id}`);
      known.delete(id);
    },
  };
  /** As a stage of this node sees it. */
  const contextOf = (hostname: string, more: object = {}): Context =>
    ({
      payload: { policy: { auto_claim_single_new_machine: true }, node_mode: "maas" },
      target: { ...aFleetNode("enrolling"), id: `fn-${hostname}`, hostname },
      maas: async () => ({ maas, target: {}, retainsMachines: false }),
      powerAccount: async () => ({ username: "maas", password: "hush" }),
      knownIdentity: async () => ({ serial: null, macs: [], bmcAddress: null }),
      otherNodeOn: async (id: string) => (bindings.get(id) === hostname ? undefined : bindings.get(id)),
      ...{ receipt: null, actingAt: null, evidence: null },
      ...more,
    }) as unknown as Context;
  return { told, bindings, known, contextOf };
}

const step = createOrFindInMaas;
const causeOf = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (error: { cause?: { code?: string }; facts?: object; message: string }) => error.message,
  );

describe("two nodes that claim the one New machine at the same moment", () => {
  test("are not both bound to it: who comes second leaves it as it is", async () => {
    const { told, bindings, contextOf } = region(aMachine("abc"));
    const [one, other] = [await step.before(contextOf("gpu-1")), await step.before(contextOf("gpu-2"))];
    expect([one.found, other.found]).toEqual(["abc", "abc"]);
    const acted = await step.act(contextOf("gpu-1", { evidence: one }));
    bindings.set("abc", "gpu-1");
    expect(await causeOf(step.act(contextOf("gpu-2", { evidence: other })))).toContain("is called gpu-1 now");
    expect(told).toEqual(["abc is gpu-1"]);
    expect(await step.probe(contextOf("gpu-1", { evidence: one, receipt: acted?.receipt }))).toMatchObject({
      state: "done",
      facts: { systemId: "abc" },
    });
  });

  test("where both have named it already, the one that is not bound by then is not", async () => {
    const { bindings, contextOf } = region(aMachine("abc", { hostname: "gpu-2", powerType: "ipmi" }));
    bindings.set("abc", "gpu-1");
    const evidence = { found: "abc", hostname: "enlisted-node" };
    const receipt = { systemId: "abc", created: false };
    expect(await causeOf(step.probe(contextOf("gpu-2", { evidence, receipt })))).toContain("belongs to node gpu-1");
  });
});

describe("a cancel", () => {
  const evidence = { found: null };
  const undone = async (given: ReturnType<typeof region>, more: object = {}) => {
    const context = contextWith(given, more);
    return [await step.undo?.(context as never), given.told] as const;
  };
  const contextWith = ({ contextOf }: ReturnType<typeof region>, more: object) =>
    contextOf("gpu-1", { evidence, actingAt: new Date(0), ...more });

  test("deletes the machine that was created although the answer to that was lost", async () => {
    const given = region(aMachine("made", { hostname: "gpu-1", powerType: "ipmi" }));
    expect(await undone(given)).toEqual([{ facts: { systemId: null } }, ["delete made"]]);
  });

  test.each<[string, Machine, object, string?]>([
    ["that somebody has begun to use", aMachine("made", { hostname: "gpu-1", powerType: "ipmi", status: READY }), {}],
    ["that has no power of ours", aMachine("made", { hostname: "gpu-1" }), {}],
    ["of another name", aMachine("made", { hostname: "gpu-2", powerType: "ipmi" }), {}],
    ["that another node is", aMachine("made", { hostname: "gpu-1", powerType: "ipmi" }), {}, "gpu-9"],
    [
      "that was there before",
      aMachine("made", { hostname: "gpu-1", powerType: "ipmi" }),
      { evidence: { found: "made" } },
    ],
  ])("leaves a machine %s", async (_what, machine, more, boundTo) => {
    const given = region(machine);
    if (boundTo !== undefined) given.bindings.set("made", boundTo);
    expect(await undone(given, more)).toEqual([{ facts: { systemId: null } }, []]);
  });
});
