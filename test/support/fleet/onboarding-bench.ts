import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JournalTail } from "../../../src/engine/watch.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { SharedClock } from "../../../src/kernel/time/shared-clock.ts";
import type { FleetAction } from "../../../src/lifecycles/fleet-node/actions.ts";
import type { FleetNode } from "../../../src/lifecycles/fleet-node/fleet-node.ts";
import { DEFAULT_POLICY, type FleetPolicy } from "../../../src/lifecycles/fleet-node/policy.ts";
import { jobStateOf } from "../../../src/runs/model/job-state.ts";
import type { Step } from "../../../src/runs/model/plan/plan.ts";
import { fleetOnboarding } from "../../../src/runs/workflows/fleet/fleet-onboarding.ts";
import { planOfWorkflow } from "../../../src/runs/workflows/workflow.ts";
import { enrolAgent } from "../../../src/services/fleet/agent/enrol.ts";
import { jobViewOf } from "../../../src/services/fleet/job-view.ts";
import { actOnNode } from "../../../src/services/fleet/node-actions.ts";
import { callOf, placeOfUrl } from "../../../src/services/fleet/site-target.ts";
import { addSite } from "../../../src/services/fleet/sites.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { createRun, newRunId } from "../../../src/services/run/creation.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import type { Run } from "../../../src/services/run/read.ts";
import { noteHeartbeats } from "../../../src/store/fleet/agents.ts";
import { fleetNodeStore } from "../../../src/store/fleet/nodes.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { announceNow } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { listRuns } from "../../../src/store/run/runs.ts";
import { registerRoutes } from "../../../src/wiring/routes.ts";
import { startApi } from "../../integration/api/api-under-test.ts";
import { type MaasHost, startMaasSite } from "../../integration/fleet/maas-site.ts";
import { type CliServer, printedNext, runPrinted, type Typed } from "../cli/run-printed.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { eventually } from "../eventually.ts";
import { openRunReplica, type RunReplica } from "../processes/run-replica.ts";
import { NOTHING_ELSE, tester } from "../run-bench.ts";

export interface MachineInMaas {
  readonly system_id: string;
  readonly host: string | null;
  readonly hostname: string;
  readonly status_name: string;
  readonly user_data: string | null;
}

/** A call that changed something, as MAAS's own log has it. */
export interface MaasCall {
  readonly method: string;
  readonly path: string;
  readonly op: string | null;
  readonly status: number;
}

export const SITE = "lab";

/** Puts a node and the machine that it is on record, with the account of its management controller, and starts its onboarding. */
export async function startOnboarding(
  deps: RunDeps,
  host: MaasHost,
  { policy = {}, hasAccount = true, hostname = `node-${host.id}`, serial = "", deadlines = {} }: OnboardingOptions = {},
): Promise<{ readonly nodeId: string; readonly runId: string }> {
  const [nodeId, machineId, runId] = [`fn-${randomBytes(6).toString("hex")}`, `m-${host.id}`, newRunId()];
  const spec = {
    ...NOTHING_ELSE,
    ...{ serial, macAddresses: [], sshEndpoint: "" },
    provider: "maas",
    bmcEndpoint: host.ipmi_address,
    bmcProtocol: "ipmi",
  };
  await registerMachine(deps, tester, { id: machineId, labels: {}, spec: { ...spec, sshHostKey: "", jumpHosts: [] } });
  if (hasAccount) await giveAccount(deps, machineId, host);
  const target = { kind: "fleet_node", id: nodeId };
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [target, { kind: "run", id: runId }]);
    await create(tx, fleetNodeStore as never, {
      ...{ id: nodeId, state: "enrolling", actor: "tester" },
      row: {
        ...{ site: SITE, profile: "gpu", sku: "gpu8", hostname, mode: "maas", machine_id: machineId },
        ...{ ipmi_ip: host.ipmi_address, request_id: nodeId, fingerprint: "", created_by: "tester" },
      },
    });
    const payload: JsonObject = { policy: { ...DEFAULT_POLICY, ...policy }, node_mode: "maas" };
    const withDeadline = (step: Step) => ({ ...step, timeoutSeconds: deadlines[step.name] ?? step.timeoutSeconds });
    const payloads = Object.fromEntries(fleetOnboarding.stages.map(({ name }) => [name, payload]));
    const plan = planOfWorkflow(fleetOnboarding, deps.steps, { payloads });
    await createRun(tx, deps, tester, {
      ...{ id: runId, target, requestId: nodeId, fingerprint: "", type: "ONBOARD", facts: {}, params: {} },
      plan: { ...plan, steps: plan.steps.map(withDeadline) },
    });
  });
  return { nodeId, runId };
}

export const giveAccount = (deps: RunDeps, machineId: string, host: MaasHost): Promise<unknown> =>
  setMachineCredentials(deps, tester, {
    machineId,
    bmcUsername: host.ipmi_username,
    bmcPassword: host.ipmi_password,
    sshUsername: "",
    sshPrivateKey: "",
  });

export interface OnboardingOptions {
  readonly policy?: Partial<FleetPolicy>;
  readonly hasAccount?: boolean;
  readonly hostname?: string;
  /** As it is on record; absent: none is. */
  readonly serial?: string;
  /** MAAS leaves its boot port without a network. */
  readonly linkUp?: boolean;
  /** How many seconds single stages may take. */
  readonly deadlines?: Readonly<Record<string, number>>;
}

export const addLabSite = (deps: RunDeps, { url, apiKey }: { url: string; apiKey: string }): Promise<unknown> =>
  addSite(deps, tester, {
    ...{ name: SITE, url, apiKey, description: "", retainInMaas: false, allowHttp: true, skipProbe: true },
  });

/** What the system that MAAS installs does: it enrols with the token of its user data, and says that it is well. */
export async function enrolDeployed(deps: RunDeps, nodeId: string, userData: string): Promise<void> {
  const decoded = (text: string) => Buffer.from(text, "base64").toString("utf8");
  const whole = decoded(userData);
  // Behind a bundle of the site, what is ours is a part of its own.
  const text = [whole, ...whole.split(/\r?\n\r?\n|\r?\n--/).map(decoded)].join("\n");
  const token = /mwe_[A-Za-z0-9_-]+/.exec(text)?.[0];
  if (token === undefined) throw new Error(`there is no token in the user data: ${text}`);
  await enrolAgent(deps, { nodeId, token, nonce: randomBytes(16).toString("hex"), address: null });
  await noteHeartbeats(deps.db, [{ nodeId, health: "healthy" }] as never);
  const [run] = await listRuns(deps.db, { target: { kind: "fleet_node", id: nodeId }, limit: 1 });
  if (run) await deps.db.transaction((tx) => work.wake(tx, [{ kind: "run", id: run.id }]));
}

/** The services for the command line, as a server has them. */
async function serveCli(deps: RunDeps): Promise<CliServer & { close(): Promise<void> }> {
  const system = { version: "1", commit: "", schema: "", startedAt: new Date(), replica: "bench" };
  const api = await startApi({
    routes: (router) =>
      registerRoutes(router, {
        ...{ services: deps, runs: deps, onTokenRevoked() {} },
        events: new JournalTail({ db: deps.db, log: silentLog }),
        system: { ...system, clock: new SharedClock() },
      }),
  });
  return { transport: api.grpc(), close: () => api.close() };
}

/** A simulated MAAS, a replica that works on everything, and what the people around both do. */
export async function openOnboardingBench(options: {
  readonly hosts: number;
  readonly speed?: number;
  /** Others do the work. */
  readonly isIdle?: true;
}) {
  const maas = await startMaasSite(options);
  const database: TestDatabase = await createTestDatabase();
  const directory = mkdtempSync(join(tmpdir(), "millwright-onboarding-"));
  const keyFile = join(directory, "secret-key");
  const replica: RunReplica = openRunReplica({
    ...{ url: database.url, keyFile, instance: "onboarding", handlesAll: true },
  });
  const { deps } = replica;
  const { db } = deps;
  await addLabSite(deps, maas);
  if (!options.isIdle) await replica.work();
  const served = await serveCli(deps);
  const used = new Set<string>();
  const latest = async (nodeId: string): Promise<Run> => {
    const [run] = await listRuns(db, { target: { kind: "fleet_node", id: nodeId }, limit: 1 });
    if (!run) throw new Error(`node ${nodeId} has no job`);
    return run;
  };
  const bench = {
    ...{ deps, maas, latest, directory, keyFile, databaseUrl: database.url },
    /** Where the region is, for the people who use it themselves. */
    target: { ...placeOfUrl(maas.url), apiKey: maas.apiKey },
    get call() {
      return callOf("a person");
    },
    /** Every other server has a boot port that MAAS leaves without a network. */
    nextHost(bootLink: "auto" | "link_up" = "auto"): MaasHost {
      const at = maas.hosts.findIndex(
        ({ id }, index) => !used.has(id) && (index % 2 === 1) === (bootLink === "link_up"),
      );
      const host = maas.hosts[at];
      if (!host) throw new Error("the site has no more such servers");
      used.add(host.id);
      return host;
    },
    async node(id: string): Promise<FleetNode> {
      const [node] = (await fleetNodeStore.load(db, [id])).things;
      if (!node) throw new Error(`there is no node ${id}`);
      return node;
    },
    start: (host: MaasHost, more: OnboardingOptions = {}) => startOnboarding(deps, host, more),
    machines: () => maas.control<readonly MachineInMaas[]>("GET", "/maas/machines"),
    async machineOf(host: MaasHost): Promise<MachineInMaas | undefined> {
      return (await bench.machines()).find((machine) => machine.host === host.id);
    },
    async callsOn(systemId: string): Promise<readonly string[]> {
      const calls = await maas.control<readonly MaasCall[]>("GET", "/maas/calls");
      return calls
        .filter(({ path, status }) => path.includes(`/${systemId}/`) && status < 300)
        .map(({ method, op }) => op ?? method);
    },
    fault: (host: MaasHost, type: string, more: JsonObject = {}) =>
      maas.control<{ id: string }>("POST", "/faults", { device: host.id, fault: { type }, ...more }),
    unfault: (id: string) => maas.control("DELETE", `/faults/${id}`),
    /** What is to be looked at later is looked at now. */
    async hurry(): Promise<void> {
      await db.execute(
        "update work set wake_at = now() where lease_owner is null and wake_at > now() and wake_at <> 'infinity' and kind = 'run'",
      );
      await announceNow(db);
    },
    async until(nodeId: string, what: string, holds: (run: Run) => boolean | Promise<boolean>): Promise<Run> {
      await eventually(
        async () => {
          await bench.hurry();
          return holds(await latest(nodeId));
        },
        { what, within: 60_000, seen: async () => JSON.stringify(await latest(nodeId), null, 1) },
      );
      return latest(nodeId);
    },
    /** Until the job is in one of these states. */
    jobIs: (nodeId: string, ...states: readonly (string | undefined)[]) =>
      bench.until(nodeId, `its job is ${states.join(" or ")}`, (run) => states.includes(jobStateOf(run))),
    /** What a job failed of: its class, its state, and what is recommended first. */
    async failure(nodeId: string) {
      const run = await bench.jobIs(
        nodeId,
        "failed_retryable",
        "failed_manual_intervention",
        "completed",
        "reconciled",
      );
      const view = jobViewOf(run);
      const command = await printedNext(served, nodeId);
      return { class: view?.failureClass, state: view?.state, stage: view?.stage, command };
    },
    /** A line that was printed, as it is, through the command line. */
    runPrinted: (line: string, typed: Typed = {}) => runPrinted(served, line, typed),
    /** What `fleet show` prints, once it prints something. */
    printed: (nodeId: string) =>
      eventually(async () => (await printedNext(served, nodeId)) || undefined, { what: "a command is recommended" }),
    act: (nodeId: string, action: FleetAction) =>
      actOnNode(deps, tester, { node: nodeId, action, requestId: randomUUID(), comment: "seen to" }),
    /** The agent enrols as soon as the system is deployed. */
    async enrol(nodeId: string): Promise<void> {
      await bench.until(nodeId, "it waits for its agent", (run) =>
        run.steps.some(({ name, state }) => name === "wait_for_agent_enrollment" && state === "RUNNING"),
      );
      const { systemId } = (await bench.node(nodeId)).facts;
      const machine = (await bench.machines()).find(({ system_id }) => system_id === systemId);
      await enrolDeployed(deps, nodeId, machine?.user_data ?? "");
    },
    async close() {
      await served.close();
      await replica.stop();
      await maas.stop();
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return bench;
}
export type OnboardingBench = Awaited<ReturnType<typeof openOnboardingBench>>;
