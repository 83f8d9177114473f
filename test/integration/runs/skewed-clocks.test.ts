import { describe, expect, onTestFinished, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { Controller } from "../../../src/engine/controller.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { hours, milliseconds } from "../../../src/kernel/time/duration.ts";
import { SharedClock } from "../../../src/kernel/time/shared-clock.ts";
import { createRedfishShelfProvider } from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { AnyStep, ProbeReport } from "../../../src/runs/model/step.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import { wireHandlers } from "../../../src/wiring/handlers.ts";
import { wireMachineHardware } from "../../../src/wiring/machine-hardware.ts";
import { wireRunParts } from "../../../src/wiring/run-deps.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { eventually } from "../../support/eventually.ts";
import { retryable } from "../../support/failures.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Replicas on hosts whose clocks differ, on one database, with a step that does what each test says. */
let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({ steps: stepsWith({}) });
});
afterAll(() => surface.close());

const AHEAD = 90_000;
const BEHIND = -600_000;

type Behaviour = Partial<Pick<AnyStep, "act" | "probe">>;

/** The real kinds, but for one that needs no hardware: it is what a test makes of it. */
function stepsWith({ act = async () => {}, probe = async () => "done" as const }: Behaviour) {
  const reboot = allSteps.get("reboot") as AnyStep;
  const own: AnyStep = { ...reboot, needs: [], alsoNeeds: () => [], before: async () => ({}), act, probe };
  return new Map([...allSteps, ["reboot", own]]);
}

const hostThatIsAheadBy = (ms: number): Clock => ({
  now: () => new Date(Date.now() + ms),
  monotonic: systemClock.monotonic,
});

/** An engine on a host of its own, on which it takes up what is due until it is stopped. */
async function startReplica(instance: string, aheadBy: number, behaviour: Behaviour): Promise<() => Promise<void>> {
  const { db, secrets } = surface.deps;
  const clock = new SharedClock({ local: hostThatIsAheadBy(aheadBy) });
  const gateway = createBmcGateway({ clock });
  const hardware = wireMachineHardware({ clock, gateway, mayReach: () => true });
  const provider = createRedfishShelfProvider({ clock, gateway });
  const ways = { hardware, steps: stepsWith(behaviour), runbooks: new Runbooks({}) };
  const runs = { ...ways, starting: wireRunParts({ db, secrets, clock, ...ways, seedsAt: null }), instance };
  const every = { monitorEvery: hours(1), exploreEvery: hours(1) };
  const controller = new Controller({
    db,
    stores: allStores,
    log: silentLog,
    clock,
    owner: instance,
    grace: milliseconds(100),
    handlers: wireHandlers({ db, secrets, provider, clock, ...every, runs }),
  });
  const stop = new AbortController();
  await db.listen("millwright", () => controller.nudge(), stop.signal);
  const running = controller.run(stop.signal);
  const stopped = async () => {
    stop.abort();
    await running;
    await provider.close?.();
    await hardware.close();
    gateway.close();
  };
  onTestFinished(stopped);
  return stopped;
}

let plans = 0;
async function start(step: { readonly timeoutSeconds: number; readonly maxRetries: number }): Promise<string> {
  plans += 1;
  const planId = `plan-${plans}`;
  await surface.plans.createPlan({
    plan: { planId, steps: [{ name: "it", ...step, kind: { case: "reboot", value: { mode: "bmc" } } }] },
  });
  return startOn(`host-${plans}`, planId);
}
async function startOn(machine: string, planId: string): Promise<string> {
  const machineId = await surface.addMachine(machine);
  return (await surface.runs.startRun({ requestId: "once", machineId, planId })).runId;
}

async function stepOf(runId: string) {
  const [row] = await surface.db.query<{ step: Readonly<Record<string, unknown>> | null }>(
    "select facts -> 'steps' -> 0 as step from runs where id = $1",
    [runId],
  );
  return row?.step ?? {};
}
const until = (runId: string, field: string) =>
  eventually(async () => (await stepOf(runId))[field] != null, {
    what: `${field} of ${runId}`,
    seen: async () => JSON.stringify(await stepOf(runId)),
  });

/** Says that it is under way for so many looks, and then that it is done. */
function doneAfter(looks: number): () => Promise<ProbeReport> {
  let looked = 0;
  return async () => {
    looked += 1;
    return { state: looked > looks ? "done" : "in_progress" };
  };
}
/** Never comes to an end by itself: whoever does this dies over it. */
const hangs: AnyStep["act"] = ({ call }) =>
  new Promise((_, reject) => call.signal.addEventListener("abort", () => reject(call.signal.reason), { once: true }));

describe.each([
  { first: AHEAD, second: BEHIND, title: "90 s ahead hands over to one 10 min behind" },
  { first: BEHIND, second: AHEAD, title: "10 min behind hands over to one 90 s ahead" },
])("a replica $title", ({ first, second }) => {
  test("and the attempt has as long as it would have had", async () => {
    let acts = 0;
    const act = async () => {
      acts += 1;
      return undefined;
    };
    const leave = await startReplica("first", first, {
      act,
      probe: async () => (acts === 0 ? "not_done" : "in_progress"),
    });
    const runId = await start({ timeoutSeconds: 60, maxRetries: 0 });
    await until(runId, "actedAt");
    await leave();
    await startReplica("second", second, { act, probe: doneAfter(3) });
    const run = await surface.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(run.steps).toMatchObject([{ retryCount: 0 }]);
    expect(acts).toBe(1);
  });

  test("and an attempt that failed is made again after the same pause", async () => {
    const refuses = async () => Promise.reject(retryable("not today"));
    const leave = await startReplica("first", first, { act: refuses, probe: async () => "not_done" });
    const runId = await start({ timeoutSeconds: 60, maxRetries: 1 });
    await until(runId, "nextAttemptAt");
    await leave();
    let acts = 0;
    await startReplica("second", second, {
      act: async () => {
        acts += 1;
      },
      probe: async () => (acts === 0 ? "not_done" : "done"),
    });
    const run = await surface.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(run.steps).toMatchObject([{ retryCount: 1 }]);
  });

  test("in the middle of an action, and the device is given its time to show it", async () => {
    const leave = await startReplica("first", first, { act: hangs, probe: async () => "not_done" });
    const runId = await start({ timeoutSeconds: 60, maxRetries: 0 });
    await until(runId, "actingAt");
    await leave();
    const seen = { acts: 0, probes: 0 };
    await startReplica("second", second, {
      act: async () => {
        seen.acts += 1;
      },
      probe: async () => {
        seen.probes += 1;
        return seen.probes > 3 ? "done" : "not_done";
      },
    });
    const run = await surface.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(seen).toEqual({ acts: 0, probes: 4 });
  });
});

test("replicas 90 s ahead and 10 min behind work side by side, and all that they write is in the database's time", {
  tags: "race",
}, async () => {
  const RUNS = 12;
  const [before] = await surface.db.query<{ now: Date }>("select clock_timestamp() as now");
  const attempts = new Map<string, number>();
  const behaviour: Behaviour = {
    act: async ({ machine }) => {
      const count = (attempts.get(machine.id) ?? 0) + 1;
      attempts.set(machine.id, count);
      if (count === 1) throw retryable("not the first time");
    },
    probe: async ({ machine }) => ((attempts.get(machine.id) ?? 0) < 2 ? "not_done" : "done"),
  };
  await startReplica("ahead", AHEAD, behaviour);
  await startReplica("behind", BEHIND, behaviour);
  await surface.plans.createPlan({
    plan: {
      planId: "plan-together",
      steps: ["one", "two"].map((name) => ({
        name,
        timeoutSeconds: 30,
        maxRetries: 1,
        kind: { case: "reboot", value: { mode: "bmc" } },
      })),
    },
  });
  const ids: string[] = [];
  for (let count = 0; count < RUNS; count += 1) ids.push(await startOn(`together-${count}`, "plan-together"));
  const runs = await Promise.all(ids.map((id) => surface.ended(id)));
  const [after] = await surface.db.query<{ now: Date }>("select clock_timestamp() as now");
  const at = (time: { seconds: bigint; nanos: number } | undefined) => Number(time?.seconds ?? 0n) * 1_000;
  for (const run of runs) {
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    const [one, two] = run.steps;
    const times = [run.startedAt, one?.startedAt, one?.finishedAt, two?.startedAt, two?.finishedAt, run.finishedAt].map(
      at,
    );
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBeGreaterThanOrEqual((before?.now.getTime() ?? 0) - 1_000);
    expect(times.at(-1)).toBeLessThanOrEqual((after?.now.getTime() ?? 0) + 1_000);
  }
});
