import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import type { Capability } from "../../../src/capabilities/provider.ts";
import type { Endpoint } from "../../../src/runs/model/targets.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { createCluster } from "../../../src/services/catalog/clusters.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { startRun } from "../../../src/services/run/starts.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { announce } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { putMachineSshCredentials, removeMachineCredentials } from "../../../src/store/machine/credentials.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { wishFor } from "../../support/claims.ts";
import { dumpDatabase } from "../../support/database-dump.ts";
import { eventually } from "../../support/eventually.ts";
import { carryOut, checkCommand, explainOn } from "../../support/explain-bench.ts";
import { type RunBench, type RunSurface, startRunBench, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

const CAPABILITIES: Readonly<Record<string, readonly Capability[]>> = {
  datacenter: ["reset", "system", "exec", "boot", "imaging", "cluster", "locator", "power", "inventory", "sensors"],
  ironic: ["reset", "system", "exec", "power"],
  fake: ["reset", "system", "exec", "power"],
};
const capabilitiesOf = ({ provider }: { readonly provider: string }) => new Set(CAPABILITIES[provider] ?? []);

/** Nobody carries runs out, so that each stays where it was put. */
let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({ capabilitiesOf, fake: { speed: "instant" } });
  const plan = (planId: string, kind: object) =>
    surface.plans.createPlan({ plan: { planId, steps: [{ name: "only", kind: kind as never }] } });
  await plan("plan-out", { case: "rma", value: { reason: "fan" } });
  await plan("plan-check", { case: "verify", value: { clusterRef: "cluster-a" } });
  await createCluster(surface.deps, tester, {
    name: "cluster-a",
    apiUrl: "https://10.0.0.1:6443",
    kubeconfig: "apiVersion: v1",
  });
});
afterAll(() => surface.close());

/** As if nobody had ever given them. */
const forget = (on: RunSurface, machineId: string, ...endpoints: readonly Endpoint[]) =>
  on.db.execute("delete from secrets where name = any($1)", [endpoints.map((one) => `${one}/${machineId}`)]);

let count = 0;
async function machine(without: readonly Endpoint[], provider?: string): Promise<string> {
  const id = await surface.addMachine(`m-${++count}`, provider);
  await forget(surface, id, ...without);
  return id;
}
const start = (machineId: string, asked: { type?: string; planId?: string }, requestId = "r") =>
  surface.runs.startRun({ requestId, machineId, ...asked });
const runsOf = async (machineId: string) =>
  (await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs.map(({ runId }) => runId);
const COMMANDS: Readonly<Record<Endpoint, string>> = {
  bmc: "--bmc-username <name>",
  ssh: "--ssh-username <name> --ssh-key-file <file>",
};

describe("a machine of which nobody has said how to sign in to it", () => {
  test.each([
    ["bmc", "BMC", "set-netboot", { type: "REPAVE" }],
    ["ssh", "SSH", "reboot-to-netboot", { type: "REPAVE" }],
    ["bmc", "BMC", "reboot", { type: "REBOOT" }],
    ["ssh", "SSH", "apply-network-config", { type: "NET_RECONFIG" }],
    ["bmc", "BMC", "only", { planId: "plan-out" }],
    ["ssh", "SSH", "only", { planId: "plan-check" }],
  ] as const)(
    "(%s: no %s credentials) starts no run whose step %s needs them: %j; the answer has the command that gives them",
    async (endpoint, name, step, asked) => {
      const machineId = await machine([endpoint]);
      const answer = await refusal(start(machineId, asked));
      expect(answer).toMatchObject({
        code: Code.FailedPrecondition,
        field: "machine_id",
        next: `millwright machine set-credentials ${machineId} ${COMMANDS[endpoint]}`,
      });
      const named = /^there are no (\w+) credentials for machine (\S+), which step (\S+) needs/.exec(answer.message);
      expect(named?.slice(1)).toEqual([name, machineId, step]);
      await checkCommand(answer.next);
      expect(await runsOf(machineId)).toEqual([]);
    },
  );

  test("is told of both where both are missing, and of one command for both; then its runs are started", async () => {
    const machineId = await machine(["bmc", "ssh"]);
    const answer = await refusal(start(machineId, { type: "REBOOT" }));
    expect(answer.message).toContain("there are no BMC credentials");
    expect(answer.next).toBe(`millwright machine set-credentials ${machineId} ${COMMANDS.bmc} ${COMMANDS.ssh}`);
    const directory = mkdtempSync(join(tmpdir(), "millwright-key-"));
    const file = join(directory, "key");
    writeFileSync(file, "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n");
    await carryOut(surface, answer.next, { "<name>": "root", "<file>": file }, "secret");
    rmSync(directory, { recursive: true });
    await expect(start(machineId, { type: "REBOOT" })).resolves.toMatchObject({ machineId });
  });

  test("is told first of an endpoint that is missing, and of credentials before a cluster or image that is not there", async () => {
    const machineId = await machine(["bmc", "ssh"]);
    await surface.changeSpec(machineId, { sshEndpoint: "" });
    expect((await refusal(start(machineId, { type: "REPAVE" }))).message).toContain("has no SSH endpoint");
    await surface.changeSpec(machineId, { sshEndpoint: "m.example" });
    expect((await refusal(start(machineId, { type: "REPAVE" }))).message).toContain("there are no BMC credentials");
    await setMachineCredentials(surface.deps, tester, {
      machineId,
      bmcUsername: "root",
      bmcPassword: "secret",
      sshUsername: "root",
      sshPrivateKey: "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
    });
    expect((await refusal(start(machineId, { type: "REPAVE" }))).message).toContain("which is not there");
  });

  test("but that is not reached there at all is rebooted by its BMC, and one that goes out for return needs no SSH", async () => {
    const rebooted = await machine(["ssh"]);
    expect((await refusal(start(rebooted, { type: "REBOOT" }))).message).toContain("no SSH credentials");
    await surface.changeSpec(rebooted, { sshEndpoint: "" });
    await expect(start(rebooted, { type: "REBOOT" })).resolves.toMatchObject({ machineId: rebooted });
    const returned = await machine(["ssh"]);
    await expect(start(returned, { planId: "plan-out" })).resolves.toMatchObject({ machineId: returned });
  });

  test("is refused in the care of Ironic as well, which is told by them that it asks nobody; a fake one has none", async () => {
    const inIronic = await machine(["bmc"], "ironic");
    expect((await refusal(start(inIronic, { type: "REBOOT" }))).message).toContain("no BMC credentials");
    const fake = await machine([], "fake");
    await expect(start(fake, { type: "REBOOT" })).resolves.toMatchObject({ machineId: fake });
  });

  test("is previewed with what StartRun would refuse, in its words, and nothing changes", async () => {
    const machineId = await machine(["bmc", "ssh"]);
    const before = await dumpDatabase(surface.db);
    const { conflicts } = await surface.client(RunActionsService).previewRun({ machineId, type: "REBOOT" });
    expect(await dumpDatabase(surface.db)).toEqual(before);
    expect(conflicts).toEqual([
      `there are no BMC credentials for machine ${machineId}, which step reboot needs`,
      `there are no SSH credentials for machine ${machineId}, which step reboot needs`,
    ]);
    expect((await refusal(start(machineId, { type: "REBOOT" }))).message).toBe(conflicts[0]);
    await surface.changeSpec(machineId, { bmcEndpoint: "", sshEndpoint: "" });
    const missing = await surface.client(RunActionsService).previewRun({ machineId, type: "REBOOT" });
    expect(missing.conflicts).toEqual([
      `machine ${machineId} has no BMC endpoint, which step reboot needs`,
      `there are no BMC credentials for machine ${machineId}, which step reboot needs`,
    ]);
  });

  test("starts no further attempt of a run either, whoever asks for it, unless what needed them was carried over", async () => {
    const kinds = { reboot: { case: "reboot", value: {} }, out: { case: "rma", value: { reason: "fan" } } } as const;
    await surface.plans.createPlan({
      plan: {
        planId: "plan-of-two",
        steps: [
          { name: "boot", kind: kinds.reboot },
          { name: "out", kind: kinds.out },
        ],
      },
    });
    const machineId = await machine([]);
    const { runId } = await start(machineId, { planId: "plan-of-two" });
    const proven = { name: "boot", kind: "reboot", state: "SUCCEEDED", retryCount: 0, message: "", evidence: {} };
    const steps = [{ ...proven, carriedOver: false, startedAt: new Date(0), finishedAt: new Date(1) }];
    await surface.db.execute("update runs set state = 'FAILED', facts = facts || $2::jsonb where id = $1", [
      runId,
      JSON.stringify({ steps }),
    ]);
    await forget(surface, machineId, "ssh");
    const actions = surface.client(RunActionsService);
    const asked = { runId, requestId: "again" };
    for (const verb of ["rerunRun", "restartRunClean"] as const)
      expect(await refusal(actions[verb](asked)), verb).toMatchObject({
        code: Code.FailedPrecondition,
        field: "machine_id",
        next: `millwright machine set-credentials ${machineId} ${COMMANDS.ssh}`,
      });
    await forget(surface, machineId, "bmc");
    for (const verb of ["retryRun", "resumeRun", "adoptRun"] as const)
      expect((await refusal(actions[verb](asked))).message, verb).toContain("no BMC credentials");
    const bmc = { machineId, bmcUsername: "root", bmcPassword: "secret", sshUsername: "", sshPrivateKey: "" };
    await setMachineCredentials(surface.deps, tester, bmc);
    await expect(actions.retryRun(asked)).resolves.toMatchObject({ run: { attempt: 2 } });
  });
});

describe("runs that are started at the same moment", { tags: "race" }, () => {
  const runDeps = (asked: string[][]) => {
    const { secrets } = surface.deps;
    const counting: typeof secrets = {
      ...secrets,
      findNames(db, names) {
        asked.push([...names]);
        return secrets.findNames(db, names);
      },
    };
    return { ...surface.runDeps, secrets: counting, steps: allSteps, runbooks: loadRunbooks(), capabilitiesOf };
  };
  const startAll = (deps: ReturnType<typeof runDeps>, ids: readonly string[], planId: string) =>
    Promise.allSettled(
      ids.map((machineId) => startRun(deps, tester, { requestId: "r", machineId, type: "", planId, params: {} })),
    );

  test("have their credentials looked for in one query, and only those without any are refused", async () => {
    const good = await Promise.all(Array.from({ length: 6 }, () => machine([])));
    const bad = await Promise.all(Array.from({ length: 3 }, () => machine(["ssh"])));
    const asked: string[][] = [];
    const ids = [...good, ...bad];
    const ended = await startAll(runDeps(asked), ids, "plan/reboot");
    expect(ended.map(({ status }) => status)).toEqual([...good.map(() => "fulfilled"), ...bad.map(() => "rejected")]);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.toSorted()).toEqual(ids.flatMap((id) => [`bmc/${id}`, `ssh/${id}`]).toSorted());
  });

  test("have none looked for where their steps reach no machine", async () => {
    const ids = await Promise.all([machine([]), machine([])]);
    for (const id of ids) await surface.changeSpec(id, { bmcEndpoint: "", sshEndpoint: "" });
    const asked: string[][] = [];
    const ended = await startAll(runDeps(asked), ids, "plan-check");
    expect(ended.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
    expect(asked.flat()).toEqual([]);
  });
});

describe("credentials that are changed while a run is being started", () => {
  const startsWaiting = async () => {
    const [row] = await surface.db.query<{ count: number }>(
      `select count(*)::int as count from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and a.datname = current_database() and l.locktype = 'advisory'`,
    );
    return (row?.count ?? 0) > 0;
  };
  /** Starts a run while somebody holds the machine and changes something, and returns how that ended. */
  async function startDuring(machineId: string, change: Parameters<typeof surface.db.transaction>[0]) {
    let starting: Promise<PromiseSettledResult<unknown>[]> | undefined;
    await surface.db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "machine", id: machineId }]);
      starting = Promise.allSettled([start(machineId, { type: "REBOOT" })]);
      await eventually(startsWaiting, { what: "StartRun waits" });
      await change(tx);
    });
    return (await starting)?.[0]?.status;
  }

  test("are seen by it as they then are", async () => {
    const { secrets } = surface.deps;
    const without = await machine(["ssh"]);
    const given = { username: "root", privateKey: "key" };
    const [record] = await listMachines(surface.db, { ids: [without] });
    if (!record) throw new Error(`there is no ${without}`);
    const put = startDuring(without, (tx) => putMachineSshCredentials(tx, secrets, record, given));
    expect(await put).toBe("fulfilled");
    const having = await machine([]);
    const removed = startDuring(having, (tx) => removeMachineCredentials(tx, secrets, having));
    expect(await removed).toBe("rejected");
    expect(await runsOf(having)).toEqual([]);
  });
});

describe("on simulated hardware", () => {
  let bench: RunBench;
  beforeAll(async () => {
    bench = await startRunBench();
    await bench.plans.createPlan({
      plan: {
        planId: "plan-script",
        steps: [{ name: "net", kind: { case: "ssh", value: { scriptRef: "verify_network.sh" } } }],
      },
    });
  });
  afterAll(() => bench.close());

  async function hold(machineId: string): Promise<() => Promise<void>> {
    const thing = { kind: "machine", id: machineId };
    const holder = { kind: "workflow", id: "wf-1" };
    await bench.db.transaction(async (tx) => {
      await lockThings(tx, [thing]);
      await claims.acquire(tx, [wishFor(thing, holder, "rolling update")]);
    });
    return () =>
      bench.db.transaction(async (tx) => {
        await lockThings(tx, [thing]);
        await work.wake(tx, await claims.releaseAll(tx, [holder]));
        await announce(tx);
      });
  }

  test("a REPAVE that could not join leaves the machine as it is", async () => {
    const [machineId = ""] = bench.simulated.map(({ machine_id }) => machine_id);
    const before = await bench.truth(machineId);
    await forget(bench, machineId, "ssh");
    const asked = bench.runs.startRun({ requestId: "r", machineId, type: "REPAVE" });
    expect((await refusal(asked)).message).toContain("there are no SSH credentials");
    const { os, boot_override, effects } = await bench.truth(machineId);
    expect({ os, boot_override, effects }).toEqual({
      os: before.os,
      boot_override: before.boot_override,
      effects: before.effects,
    });
  });

  test("a run that loses them after its start fails by itself, and the first command that explain suggests helps", async () => {
    const [, one] = bench.simulated;
    if (!one) throw new Error("there is no machine");
    const machineId = one.machine_id;
    const release = await hold(machineId); // so that they are gone before its first step
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId: "plan-script" });
    await forget(bench, machineId, "ssh");
    await release();
    const run = await bench.ended(runId);
    expect(run).toMatchObject({ phase: Run_Phase.FAILED });
    expect(run.steps[0]?.message).toContain(`there are no SSH credentials for machine ${machineId}`);
    const { nextCommands, headline } = await explainOn(bench, "run", runId);
    expect(headline).toContain("there are no credentials to sign in with");
    const [first] = nextCommands;
    expect(first?.command).toBe(`millwright machine set-credentials ${machineId} ${COMMANDS.ssh}`);
    const directory = mkdtempSync(join(tmpdir(), "millwright-key-"));
    const file = join(directory, "key");
    writeFileSync(file, one.ssh_private_key);
    await carryOut(bench, first?.command ?? "", { "<name>": one.ssh_username, "<file>": file });
    rmSync(directory, { recursive: true });
    const { run: again } = await bench.client(RunActionsService).retryRun({ runId, requestId: "again" });
    expect(await bench.ended(again?.runId ?? "")).toMatchObject({ phase: Run_Phase.SUCCEEDED });
  });
});
