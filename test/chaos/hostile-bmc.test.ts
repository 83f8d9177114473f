import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../contract/baremetal/v1/baremetal_pb.js";
import { setMachineCredentials } from "../../src/services/machine/credentials.ts";
import { eventually } from "../support/eventually.ts";
import type { SimulatedMachine } from "../support/machine-site.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { type RunSurface, startRunSurface, tester } from "../support/run-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/**
 * Every machine here is worked on through the same Redfish provider, gateway and engine; nothing but its BMC tells what becomes of
 * it. The engine looks at far fewer things at a time than there are BMCs that hang.
 */
const OTHERS = 500;
const SLOTS = 32;
const HANGING = 40;

/** A call never lasts longer than its lease, of which a busy server may have used some already. */
const NO_ANSWER = /BMC [\d.:]+ did not answer GET \/redfish\S* (?:within 10s|in the time that was left)/;

/** What each BMC does to every request, and what its run must say is wrong. */
const HOSTILE: readonly { does: string; fault: object; says: RegExp }[] = [
  { does: "drops connections", fault: { type: "drop" }, says: /BMC [\d.:]+ cannot be reached/ },
  { does: "never answers", fault: { type: "hang" }, says: NO_ANSWER },
  {
    does: "answers a minute late",
    fault: { type: "latency", ms: 60_000 },
    says: NO_ANSWER,
  },
  { does: "rejects the credentials", fault: { type: "wrong_credentials" }, says: /wrong credentials: BMC [\d.:]+/ },
  {
    does: "answers everything with 401",
    fault: { type: "status", status: 401 },
    says: /wrong credentials: BMC [\d.:]+/,
  },
  { does: "is overloaded", fault: { type: "status", status: 503 }, says: /answered with status 503/ },
  { does: "writes garbage", fault: { type: "garbage" }, says: /not a JSON object|does not answer .* in HTTP/ },
  {
    does: "lies about restarting",
    fault: { type: "lie_accept" },
    says: /not done within 20s: the BMC reports no reset/,
  },
];

const PATIENCE = 240_000;
const TIMES_TOO_LONG = 3;
let bench: ProcessBench;
let simulator: SimulatorProcess;
let surface: RunSurface;
let machines: readonly SimulatedMachine[];

beforeAll(async () => {
  bench = openProcessBench();
  const site = join(bench.directory, "site.yaml");
  const racks = Array.from({ length: 10 }, (_, at) => `  - { id: rack-${at + 1}, shelves: 0, machines: 60 }\n`);
  writeFileSync(site, `racks:\n${racks.join("")}`);
  simulator = await startSimulatorProcess(bench, { site, speed: 3_000 });
  surface = await startRunSurface({ controller: true, inFlight: SLOTS });
  machines = await simulator.call<SimulatedMachine[]>("GET", "/inventory/machines");
  const used = machines.slice(0, OTHERS + HANGING + HOSTILE.length);
  await inCrowds(used, putOnRecord);
  const reboot = { name: "reboot", kind: { case: "reboot", value: { mode: "bmc" } } } as const;
  for (const [planId, timeoutSeconds, maxRetries] of [
    ["reboot-patiently", 200, 0],
    ["reboot-soon", 20, 0],
    ["reboot-again-and-again", 600, 50],
  ] as const) {
    await surface.plans.createPlan({
      plan: { planId, displayName: planId, steps: [{ ...reboot, timeoutSeconds, maxRetries }] },
    });
  }
}, PATIENCE);
afterAll(async () => {
  await surface.close();
  await bench.close();
});

/** Some at a time: as many callers as a busy server has. */
async function inCrowds<T>(items: readonly T[], each: (item: T) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < items.length; from += 25) await Promise.all(items.slice(from, from + 25).map(each));
}

/** By its BMC alone. */
async function putOnRecord({ machine_id: machineId, serial, bmc_endpoint: bmcEndpoint, ...one }: SimulatedMachine) {
  await surface.machines.registerMachine({
    machine: { machineId, spec: { provider: "redfish", serial, bmcEndpoint, bmcTlsTrust: "pin" } },
  });
  await setMachineCredentials(surface.deps, tester, {
    machineId,
    bmcUsername: one.bmc_username,
    bmcPassword: one.bmc_password,
    sshUsername: "",
    sshPrivateKey: "",
  });
}

const idsFrom = (first: number, count: number) =>
  machines.slice(first, first + count).map(({ machine_id }) => machine_id);
const start = (machineId: string, planId: string, requestId: string) =>
  surface.runs.startRun({ machineId, planId, requestId });

/** How the runs of one request id stand, and how long those took that have ended. */
async function standing(requestId: string, planId: string) {
  return surface.db.query<{ state: string; took: number; retries: number }>(
    `select state, extract(epoch from (facts->>'finishedAt')::timestamptz - (facts->>'startedAt')::timestamptz)::float8 as took,
            coalesce((facts->'steps'->0->>'retryCount')::int, 0) as retries
       from runs where request_id = $1 and plan_id = $2`,
    [requestId, planId],
  );
}

/** 500 runs at the same time, until the last has ended; the median of what they took. */
async function runOnTheOthers(requestId: string): Promise<number> {
  await inCrowds(idsFrom(0, OTHERS), (id) => start(id, "reboot-patiently", requestId));
  const rows = await eventually(
    async () => {
      const all = await standing(requestId, "reboot-patiently");
      return all.every(({ state }) => state !== "PENDING" && state !== "RUNNING") && all;
    },
    { what: "all runs have ended", within: PATIENCE },
  );
  expect(rows).toHaveLength(OTHERS);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(["SUCCEEDED"]));
  // Nobody was cut off, timed out or refused because of somebody else.
  expect(rows.reduce((sum, { retries }) => sum + retries, 0)).toBe(0);
  const times = rows.map(({ took }) => took).toSorted((a, b) => a - b);
  return times[OTHERS / 2] ?? Number.NaN;
}

describe("hostile BMCs", () => {
  test("fail their own runs and name the cause, while 500 runs on other machines take no notice", {
    timeout: 5 * PATIENCE,
  }, async () => {
    const alone = await runOnTheOthers("alone");

    const hanging = idsFrom(OTHERS, HANGING);
    await inCrowds(hanging, (device) => simulator.call("POST", "/faults", { device, fault: { type: "hang" } }));
    const hostile = idsFrom(OTHERS + HANGING, HOSTILE.length);
    for (const [index, { fault }] of HOSTILE.entries())
      await simulator.call("POST", "/faults", { device: hostile[index], fault });
    await inCrowds(hanging, (id) => start(id, "reboot-again-and-again", "beside"));
    const started = await Promise.all(hostile.map((id) => start(id, "reboot-soon", "beside")));
    const beside = await runOnTheOthers("beside");

    // Those that hang are still at it: the others have not waited for them, though there are fewer slots than they are.
    const waiting = await standing("beside", "reboot-again-and-again");
    expect(waiting.map(({ state }) => state)).toEqual(waiting.map(() => "RUNNING"));
    expect(waiting).toHaveLength(HANGING);
    for (const [index, { does, says }] of HOSTILE.entries()) {
      const run = await surface.ended(started[index]?.runId ?? "", PATIENCE);
      expect(run.phase, does).toBe(Run_Phase.FAILED);
      expect(run.error?.message, `a BMC that ${does}`).toMatch(says);
      const password = machines.find(({ machine_id }) => machine_id === run.machineId)?.bmc_password ?? "";
      expect(run.error?.message).not.toContain(password);
    }

    // A median of runs that each take many looks: that it be the same would be luck. Slots that hostile BMCs hold make it many times
    // as much, in every round; a computer that is busy with something else does so in some. Should it have stayed busy since, the
    // runs take as long when nobody is hostile.
    let best = beside;
    for (const again of ["beside again", "beside once more"]) {
      if (best < TIMES_TOO_LONG * alone) return;
      best = Math.min(best, await runOnTheOthers(again));
    }
    await simulator.call("DELETE", "/faults");
    expect(best).toBeLessThan(TIMES_TOO_LONG * Math.max(alone, await runOnTheOthers("alone again")));
  });
});
