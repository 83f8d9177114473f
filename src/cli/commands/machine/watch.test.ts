import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  type Machine,
  MachineSchema,
  MachineService,
  MachineStatus_Phase as Phase,
  RunService,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

/** Machines behind the service that commands talk to, and a stream that the test feeds. The filter is a phase, failing, or nothing. */
function fleet() {
  const events = createFakeShelves();
  const machines = new Map<string, Machine>();
  const put = (machineId: string, phase: Phase, status: MessageInitShape<typeof MachineSchema>["status"] = {}) =>
    machines.set(machineId, create(MachineSchema, { machineId, status: { ...status, phase, effectiveState: phase } }));
  const matches = (machine: Machine, filter: string) =>
    filter.split(" AND ").every((condition) => {
      const [field = "", value = ""] = condition.split("=");
      if (field === "machine_id") return machine.machineId === value;
      if (field === "failing") return String(machine.status?.failing) === value;
      return field !== "phase" || Phase[machine.status?.phase ?? 0] === value;
    });
  const routes = (router: ConnectRouter) => {
    events.routes(router);
    router.service(MachineService, {
      listMachines: ({ filter }) => ({ machines: [...machines.values()].filter((each) => matches(each, filter)) }),
      getMachine({ machineId }) {
        const found = machines.get(machineId);
        if (!found) throw new ConnectError(`machine ${machineId} does not exist`, Code.NotFound);
        return found;
      },
    });
    router.service(RunService, { listRuns: () => ({ runs: [] }) });
  };
  put("m-1", Phase.READY);
  put("m-2", Phase.READY);
  put("m-3", Phase.RMA);
  const changed = (id: string) => events.emit({ kind: "machine", id, type: "conditions_changed" });
  return { put, changed, routes };
}

const now = new Date("2026-03-01T12:00:00Z");

test("--watch lists what the filter lets through, then a line for each change, also of what leaves the list", async () => {
  const fake = fleet();
  const terminal = createFakeTerminal({ now });
  const running = runAgainst(fake.routes, ["machine", "list", "--watch", "--filter", "phase=READY", "-o", "json"], {
    terminal,
  });
  await terminal.printed('"m-2"');
  fake.changed("m-3"); // not in the list, and says nothing
  fake.put("m-1", Phase.MAINTENANCE);
  fake.changed("m-1");
  await terminal.printed("MAINTENANCE");
  terminal.interrupt();
  const { code, out } = await running;
  expect(code).toBe(130);
  const lines = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { machine_id: string });
  expect(lines.map(({ machine_id }) => machine_id)).toEqual(["m-1", "m-2", "m-1"]);
});

test("--failing --watch shows a machine when it begins to fail, and once more when it has ceased to", async () => {
  const fake = fleet();
  fake.put("m-1", Phase.READY, { failing: true });
  const terminal = createFakeTerminal({ now });
  const running = runAgainst(fake.routes, "machine list --failing --watch -o csv", { terminal });
  await terminal.printed("m-1,READY");
  fake.put("m-3", Phase.RMA, { failing: true });
  fake.changed("m-3");
  await terminal.printed("m-3,RMA");
  fake.put("m-1", Phase.MAINTENANCE);
  fake.changed("m-1");
  await terminal.printed("m-1,MAINTENANCE");
  terminal.interrupt();
  expect((await running).out).not.toContain("m-2");
});

test("--watch redraws the table in place on a terminal", async () => {
  const fake = fleet();
  const terminal = createFakeTerminal({ isTTY: true, columns: 120, rows: 20, now });
  const running = runAgainst(fake.routes, "machine list --watch", { terminal });
  await terminal.printed("m-3");
  fake.put("m-1", Phase.READY, { banners: ["Degraded"] });
  fake.changed("m-1");
  await terminal.printed("Degraded");
  terminal.interrupt();
  expect((await running).code).toBe(130);
});

test("--watch of one machine shows it again with each of its changes, until it is stopped", async () => {
  const fake = fleet();
  const terminal = createFakeTerminal({ isTTY: true, columns: 120, rows: 40, now });
  const running = runAgainst(fake.routes, "machine show m-1 --watch", { terminal });
  await terminal.printed("Machine:");
  fake.put("m-1", Phase.MAINTENANCE, { waitingFor: "3 pods remain: a, b, c" });
  fake.changed("m-1");
  await terminal.printed("3 pods remain");
  terminal.interrupt();
  expect((await running).code).toBe(130);
});

test.each([24, 0])(
  "--watch of one machine has its conditions within a screen of %i rows, the usual 24 where none are told",
  async (rows) => {
    const fake = fleet();
    const types = [
      "Reachable",
      "BMCReachable",
      "Provisioned",
      "InCustomerCluster",
      "Drained",
      "Degraded",
      "NeedsIntervention",
    ];
    fake.put("m-1", Phase.MAINTENANCE, {
      waitingFor: "3 pods remain: a, b, c",
      residue: ["reboot: it may restart later"],
      inventory: { vendor: "a long name ".repeat(60), powerState: "on", bmcFirmwareVersion: "1.09.2", bootId: "b-1" },
      conditions: types.map((type) => ({
        type,
        status: true,
        reason: "Because",
        message: "node m-1 of default-cluster",
      })),
    });
    const terminal = createFakeTerminal({ isTTY: true, columns: 80, rows, now });
    const running = runAgainst(fake.routes, "machine show m-1 --watch", { terminal });
    await terminal.printed("Machine:");
    terminal.interrupt();
    const { out } = await running;
    const lines = (out.split("\u001b[?7h", 1)[0] ?? "").trimEnd().split("\n");
    expect(lines.findIndex((line) => line.startsWith("Drained"))).toBeGreaterThan(0);
    expect(lines).toHaveLength(23);
    expect(lines.at(-1)).toMatch(/^… and 1?\d more$/);
  },
);

test("--watch of a machine that does not exist says so", async () => {
  expect((await runAgainst(fleet().routes, "machine show m-9 --watch", { now })).code).toBe(3);
});
