import type { ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { MachineService, Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { BootDevice, MachinePowerService, PowerOperation } from "../../../../contract/millwright/v1/machine_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

function server({ serving = [], silent = [] }: { serving?: readonly string[]; silent?: readonly string[] } = {}) {
  const asked: object[] = [];
  const started = (machineIds: readonly string[]) => ({
    results: machineIds.map((machineId) =>
      machineId === "m-bad"
        ? { machineId, refusal: "machine m-bad is RETIRED", next: "millwright machine show m-bad" }
        : { machineId, run: { runId: `run-${machineId}`, machineId, phase: Run_Phase.PENDING } },
    ),
  });
  const routes = (router: ConnectRouter) => {
    router.service(MachineService, {
      listMachines: ({ filter }) => ({
        machines: serving
          .filter((id) => filter.includes(`serves_cluster=true AND`) && filter.includes(id))
          .map((machineId) => ({ machineId })),
      }),
    });
    router.service(MachinePowerService, {
      setMachinePower({ machineIds, operation, requestId }) {
        asked.push({ machineIds, operation, requestId });
        return started(machineIds);
      },
      setBootDevice({ machineIds, device, requestId }) {
        asked.push({ machineIds, device, requestId });
        return started(machineIds);
      },
      getMachinePower: ({ machineIds }) => ({
        machines: machineIds.map((machineId) =>
          silent.includes(machineId)
            ? { machineId, power: "on", error: "BMC 10.0.0.1:443 does not answer" }
            : { machineId, power: "off", offByRunId: "run-7" },
        ),
      }),
    });
  };
  return { asked, routes };
}

test.each([
  ["on", PowerOperation.ON],
  ["off", PowerOperation.OFF],
  ["cycle", PowerOperation.CYCLE],
])("machine power %s takes many machines in one call, and prints their runs", async (word, operation) => {
  const { asked, routes } = server();
  const { code, out } = await runAgainst(routes, `machine power ${word} m-1 m-2 m-1 --request-id once`);
  expect(asked).toEqual([{ machineIds: ["m-1", "m-2"], operation, requestId: "once" }]);
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/run-m-1.*\n.*run-m-2/) });
});

test("machine power off and cycle ask before machines that serve lose power; on does not", async () => {
  for (const word of ["off", "cycle"]) {
    const { asked, routes } = server({ serving: ["m-2"] });
    const { code, err } = await runAgainst(routes, `machine power ${word} m-1 m-2`);
    expect({ code, asked }).toEqual({ code: 2, asked: [] });
    expect(err).toContain(`m-2 serves a cluster and is not drained. Power ${word}?`);
    expect((await runAgainst(routes, `machine power ${word} m-1 m-2 --yes`)).code).toBe(0);
    expect((await runAgainst(routes, `machine power ${word} m-2`, { isTTY: true, answer: "yes" })).code).toBe(0);
    expect(asked).toHaveLength(2);
  }
  expect((await runAgainst(server({ serving: ["m-2"] }).routes, "machine power on m-2")).code).toBe(0);
});

test("a machine that is refused is named with what helps, and the exit code tells", async () => {
  const { code, err, out } = await runAgainst(server().routes, "machine power on m-1 m-bad");
  expect(code).toBe(4);
  expect(err).toContain("error: m-bad: machine m-bad is RETIRED; millwright machine show m-bad");
  expect(out).toContain("run-m-1");
});

test("machine power status shows what the BMC says, who switched the machine off, and which BMC is silent", async () => {
  const { code, out } = await runAgainst(server({ silent: ["m-2"] }).routes, "machine power status m-1 m-2");
  expect(code).toBe(6);
  expect(out).toMatch(/m-1 +off +off on purpose, by run run-7/);
  expect(out).toMatch(/m-2 +on +as last seen: BMC 10\.0\.0\.1:443 does not answer/);
  const json = await runAgainst(server().routes, "machine power status m-1 -o json");
  expect(JSON.parse(json.out)).toMatchObject([{ machine_id: "m-1", power: "off", off_by_run_id: "run-7" }]);
});

test("machine boot-device sends the device, and refuses one that there is not", async () => {
  const { asked, routes } = server();
  expect((await runAgainst(routes, "machine boot-device m-1 --device pxe --request-id once")).code).toBe(0);
  expect(asked).toEqual([{ machineIds: ["m-1"], device: BootDevice.PXE, requestId: "once" }]);
  expect((await runAgainst(routes, "machine boot-device m-1 --device floppy")).code).toBe(2);
});
