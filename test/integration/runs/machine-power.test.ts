import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineStatus_Phase, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { BootDevice, MachinePowerService, PowerOperation } from "../../../contract/millwright/v1/machine_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { openConditionBench } from "../../support/condition-bench.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let bench: RunBench;
let looks: ReturnType<typeof openConditionBench>;
beforeAll(async () => {
  bench = await startRunBench();
  looks = openConditionBench(bench);
  await Promise.all(bench.simulated.map(({ machine_id: machineId }) => bench.lifecycle.acceptMachine({ machineId })));
});
afterAll(async () => {
  await looks.close();
  await bench.close();
});

let next = 0;
const machine = (): string => bench.simulated[next++]?.machine_id ?? expect.unreachable();
const power = () => bench.client(MachinePowerService);
let count = 0;
async function set(machineIds: string[], operation: PowerOperation) {
  const { results } = await power().setMachinePower({ machineIds, operation, requestId: `power-${++count}` });
  return Promise.all(results.map(({ run }) => bench.ended(run?.runId ?? "")));
}
const powerOf = async (id: string) => (await bench.truth(id)).power;
const show = async (machineId: string) => (await bench.machines.getMachine({ machineId })).status;

describe("the power of machines", () => {
  test("off and on are short runs on each machine, proved by reading the power back", async () => {
    const ids = [machine(), machine()];
    for (const [operation, wanted] of [
      [PowerOperation.OFF, "off"],
      [PowerOperation.OFF, "off"],
      [PowerOperation.ON, "on"],
    ] as const) {
      const runs = await set(ids, operation);
      expect(runs.map(({ phase, machineId }) => [machineId, phase])).toEqual(
        ids.map((id) => [id, Run_Phase.SUCCEEDED]),
      );
      expect(runs[0]?.steps.map(({ name, message }) => [name, message])).toEqual([
        [`power-${wanted}`, `the BMC reports power ${wanted}`],
      ]);
      expect(await Promise.all(ids.map(powerOf))).toEqual([wanted, wanted]);
      expect(await show(ids[0] ?? "")).toMatchObject({ phase: MachineStatus_Phase.READY, activeRunId: "" });
    }
  });

  test("a cycle reads off before it commands on; status reads and changes nothing", async () => {
    const id = machine();
    const [run] = await set([id], PowerOperation.CYCLE);
    expect(run?.phase).toBe(Run_Phase.SUCCEEDED);
    expect(run?.steps.map(({ name }) => name)).toEqual(["power-off", "power-on"]);
    const before = await bench.truth(id);
    expect((await power().getMachinePower({ machineIds: [id] })).machines).toMatchObject([
      { machineId: id, power: "on", error: "", offByRunId: "" },
    ]);
    expect((await bench.truth(id)).effects).toEqual(before.effects);
    await bench.fault({ device: id, fault: { type: "drop" } });
    const [silent] = (await power().getMachinePower({ machineIds: [id] })).machines;
    expect(silent).toMatchObject({ power: "on", error: expect.stringContaining("127.") });
    await bench.control("DELETE", "/faults");
  });

  test("a machine that cannot take a run is refused by itself, and the same request again is the same run", async () => {
    const [id, busy] = [machine(), machine()];
    const { runId } = await bench.runs.startRun({ requestId: "busy", machineId: busy, type: "NET_RECONFIG" });
    const asked = { machineIds: [id, busy, "m-unknown"], operation: PowerOperation.ON, requestId: "once" };
    const { results } = await power().setMachinePower(asked);
    expect(results.map(({ machineId, refusal }) => [machineId, refusal])).toEqual([
      [id, ""],
      [busy, expect.stringContaining(`has an active run, ${runId}`)],
      ["m-unknown", expect.stringContaining("does not exist")],
    ]);
    const again = await power().setMachinePower(asked);
    expect(again.results[0]?.run?.runId).toBe(results[0]?.run?.runId);
    await bench.runs.cancelRun({ runId });
    const code = async (call: Promise<unknown>) => ConnectError.from(await call.catch((error: unknown) => error)).code;
    expect(await code(power().setMachinePower({ ...asked, machineIds: [] }))).toBe(Code.InvalidArgument);
    expect(await code(power().setMachinePower({ ...asked, operation: 0 }))).toBe(Code.InvalidArgument);
    expect(await code(power().setMachinePower({ ...asked, operation: 9 as PowerOperation }))).toBe(
      Code.InvalidArgument,
    );
    expect(await code(power().setMachinePower({ ...asked, requestId: "" }))).toBe(Code.InvalidArgument);
    expect(await code(power().setBootDevice({ machineIds: [id], requestId: "x" }))).toBe(Code.InvalidArgument);
    expect(await code(power().getMachinePower({ machineIds: ["m-unknown"] }))).toBe(Code.NotFound);
  });

  test("a machine that lies about its power fails the run, and is not off on purpose", async () => {
    const id = machine();
    await bench.fault({ device: id, fault: { type: "lie_accept" } });
    const { results } = await power().setMachinePower({
      machineIds: [id],
      operation: PowerOperation.OFF,
      requestId: "lie",
    });
    const runId = results[0]?.run?.runId ?? "";
    await eventually(
      async () => (await bench.runs.getRun({ runId })).steps[0]?.message.includes("wanted off") || undefined,
      {
        what: "the step waits for the power",
        within: 20_000,
      },
    );
    await bench.runs.cancelRun({ runId });
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.CANCELED);
    await bench.control("DELETE", "/faults");
    expect((await power().getMachinePower({ machineIds: [id] })).machines[0]).toMatchObject({ offByRunId: "" });
  });
});

test("a machine that is off on purpose is not failing, across restarts, until somebody switches it on", async () => {
  const id = machine();
  const first = looks.start();
  await looks.becomes(id, "Reachable", true);
  const [run] = await set([id], PowerOperation.OFF);
  const { message } = await looks.becomes(id, "Reachable", false, "OffOnPurpose");
  expect(message).toBe(`powered off by run ${run?.runId}`);
  expect(await show(id)).toMatchObject({ failing: false });
  const failing = await bench.machines.listMachines({ filter: `failing=true AND machine_id=${id}` });
  expect(failing.machines).toEqual([]);
  expect((await power().getMachinePower({ machineIds: [id] })).machines[0]).toMatchObject({
    power: "off",
    offByRunId: run?.runId,
  });
  const terminal = createFakeTerminal();
  await runCli(["explain", "machine", id], { version: "1", terminal, transport: bench.transport });
  expect(terminal.out()).toContain(`powered off on purpose, by run ${run?.runId}`);
  await first.stop();
  // Somebody presses its button; a reconciler of another process sees that.
  await bench.control("POST", `/devices/${id}/power`, { power: "on" });
  looks.start();
  await looks.becomes(id, "Reachable", true);
  await eventually(
    async () => {
      const [row] = await bench.db.query<{ off: unknown }>(
        "select facts -> 'offOnPurpose' as off from machines where id = $1",
        [id],
      );
      return row?.off === null || undefined;
    },
    { what: "the purpose has ended", within: 30_000 },
  );
});

test("the boot device is set, read back and cleared", async () => {
  const id = machine();
  for (const [device, message] of [
    [BootDevice.PXE, "the next boot is from pxe"],
    [BootDevice.NONE, "the machine boots in its own order"],
  ] as const) {
    const { results } = await power().setBootDevice({ machineIds: [id], device, requestId: `boot-${device}` });
    const run = await bench.ended(results[0]?.run?.runId ?? "");
    expect(run.phase).toBe(Run_Phase.SUCCEEDED);
    expect(run.steps.map((step) => step.message)).toEqual([expect.stringContaining(message)]);
  }
});
