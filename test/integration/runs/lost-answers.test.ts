import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Run_Phase, StepStatus_State } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { createPlan, type StepInput } from "../../../src/services/run/plans.ts";
import { openCuttableWay } from "../../support/counterparts/cuttable-way.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";
import { effectsSince } from "../../support/step-kinds.ts";

/** Devices that obey and do not say so, on simulated machines that count what is done to them. */
let bench: RunBench;
let unused: string[];
beforeAll(async () => {
  bench = await startRunBench({ site: "racks=2", runbooks: new Runbooks({ "wait.sh": "sleep 100000\n" }) });
  unused = bench.simulated.map(({ machine_id }) => machine_id);
});
afterAll(() => bench.close());

const RESET = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

function machine(): string {
  const id = unused.shift();
  if (id === undefined) throw new Error("there is no machine left");
  return id;
}

let plans = 0;
async function start(machineId: string, step: Omit<StepInput, "name">): Promise<string> {
  const planId = `plan-${++plans}`;
  await createPlan(bench.deps, tester, { planId, displayName: "", steps: [{ name: "only", ...step }] });
  return (await bench.runs.startRun({ requestId: "r", machineId, planId })).runId;
}

const REBOOT = { kind: "reboot", payload: { mode: "bmc", force: true }, timeoutSeconds: 120 } as const;
const REPAVE = { kind: "repave", payload: { image_ref: "ubuntu:22.04-k8s" }, timeoutSeconds: 120 } as const;
const REBOOTED = { force_restart_commands: 1, resets: 1, boots: 1 };
const REPAVED = {
  ...REBOOTED,
  media_inserts: 1,
  boot_override_changes: 1,
  installs_started: 1,
  installs: 1,
  media_ejects: 1,
};
const ANSWERS = [
  ["500", { type: "status", status: 500 }],
  ["504", { type: "status", status: 504 }],
  ["garbage", { type: "garbage" }],
  ["nothing", { type: "drop" }],
] as const;
const KINDS = [
  ["reboot", REBOOT, REBOOTED],
  ["repave", REPAVE, REPAVED],
] as const;

describe("a BMC that obeys a reset and then answers with", { concurrent: true, timeout: 60_000 }, () => {
  test.for(
    ANSWERS.flatMap(([answer, fault]) => KINDS.map(([kind, ...rest]) => [answer, kind, fault, ...rest] as const)),
  )(
    "%s is not told a second time: the %s is done once, in the first attempt",
    async ([, , fault, step, effects], { expect }) => {
      const id = machine();
      await bench.fault({ device: id, method: "POST", path: RESET, times: 1, fault: { ...fault, when: "after" } });
      const before = await bench.truth(id);
      const run = await bench.ended(await start(id, { ...step, maxRetries: 0 }));
      expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
      expect(run.steps).toMatchObject([{ state: StepStatus_State.SUCCEEDED, retryCount: 0 }]);
      expect(effectsSince(before, await bench.truth(id))).toEqual(effects);
    },
  );
});

const EJECT = "/redfish/v1/Managers/bmc/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia";

describe("an installation that has proved itself is not begun again", { concurrent: true, timeout: 90_000 }, () => {
  test("where the BMC ejects its medium late", async ({ expect }) => {
    const id = machine();
    await bench.fault({ device: id, method: "POST", path: EJECT, times: 1, fault: { type: "status", status: 204 } });
    const before = await bench.truth(id);
    const run = await bench.ended(await start(id, { ...REPAVE, maxRetries: 1 }));
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(run.steps).toMatchObject([{ state: StepStatus_State.SUCCEEDED, retryCount: 0 }]);
    expect(effectsSince(before, await bench.truth(id))).toEqual(REPAVED);
  });

  test("where the BMC never ejects it: a person is called", async ({ expect }) => {
    const id = machine();
    await bench.fault({ device: id, method: "POST", path: EJECT, fault: { type: "status", status: 400 } });
    const before = await bench.truth(id);
    const run = await bench.ended(await start(id, { ...REPAVE, timeoutSeconds: 15, maxRetries: 1 }), 60_000);
    expect(run.phase).toBe(Run_Phase.FAILED);
    expect(run.error).toMatchObject({
      retryable: false,
      message: expect.stringMatching(/is installed, but .*the medium is still inserted: the machine installs again/),
    });
    expect(run.residue).toEqual([expect.stringContaining("the medium is still inserted: the machine installs again")]);
    expect(run.steps).toMatchObject([{ retryCount: 1 }]);
    expect(effectsSince(before, await bench.truth(id))).toMatchObject({ installs: 1 });
  });
});

test("a script that went on while its machine could not be reached is ended before the next attempt starts another", async () => {
  const direct = bench.simulated.find(({ machine_id, jump }) => unused.includes(machine_id) && jump === undefined);
  const id = direct?.machine_id ?? "";
  unused = unused.filter((other) => other !== id);
  const way = await openCuttableWay(direct?.ssh_endpoint ?? "");
  onTestFinished(() => way.close());
  const { spec } = await bench.machines.getMachine({ machineId: id });
  if (spec === undefined) throw new Error("the machine has no spec");
  await bench.machines.updateMachine({
    machine: { machineId: id, spec: { ...spec, sshEndpoint: `127.0.0.1:${way.port}` } },
  });
  // The key is for the address that it was given for.
  const { ssh_username: sshUsername = "", ssh_private_key: sshPrivateKey = "" } = direct ?? {};
  const key = { sshUsername, sshPrivateKey };
  await setMachineCredentials(bench.deps, tester, { machineId: id, bmcUsername: "", bmcPassword: "", ...key });
  const step = { kind: "ssh", payload: { script_ref: "wait.sh" }, timeoutSeconds: 6, maxRetries: 1 };
  const runId = await start(id, step);
  const said = async () => (await bench.logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("");
  const visit = async () => (await bench.runs.getRun({ runId })).steps[0];
  await eventually(async () => /wait\.sh .* started/.test(await said()), {
    what: "the script was started",
    seen: said,
  });
  way.cut();
  await eventually(async () => /is not undone/.test((await visit())?.message ?? ""), {
    what: "the second attempt waits for the machine",
    seen: said,
  });
  expect(await visit()).toMatchObject({ retryCount: 1 });
  way.mend();
  const run = await bench.ended(runId, 60_000);
  expect(run.phase).toBe(Run_Phase.FAILED); // the second one does not end in time either, and was ended in its turn
  expect(run.residue).toEqual(["only: script wait.sh may have been carried out in part"]);
  const log = await said();
  const begins = log.indexOf("begins, attempt 2");
  expect(begins).toBeGreaterThan(log.indexOf("was undone"));
  expect(log.match(/was undone/g)).toHaveLength(2);
}, 90_000);
