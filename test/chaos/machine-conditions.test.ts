import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClusterTarget } from "../../src/capabilities/cluster-target.ts";
import { aCall } from "../../src/capabilities/conformance/device-bench.ts";
import { targetOfKubeconfig } from "../../src/providers/kubernetes/kubeconfig.ts";
import { createKubernetesProvider } from "../../src/providers/kubernetes/kubernetes-provider.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench, type StartedProcess } from "../support/processes/process-bench.ts";
import {
  adminToken,
  type ServerOptions,
  type ServerProcess,
  spawnServer,
  startServerProcess,
} from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";

/** Kill -9 while conditions are being kept and while nodes are drained: the next server carries on, and nothing is done twice. */
let bench: ProcessBench;
let simulator: SimulatorProcess;
let prepared: TestDatabase;
let token: string;
let cluster: ClusterTarget;
const kubernetes = createKubernetesProvider();
/** Machines that no test has had yet. */
let unused: string[];

const keyFile = () => join(bench.directory, "secret-key");
const settings = () => ({ MILLWRIGHT_SECRET_KEY_FILE: keyFile(), MILLWRIGHT_CONDITIONS_INTERVAL: "1s" });

beforeAll(async () => {
  bench = openProcessBench();
  simulator = await startSimulatorProcess(bench, { speed: 20 });
  prepared = await createTestDatabase();
  token = await adminToken(prepared);
  const deps = {
    db: prepared.db,
    stores: allStores,
    secrets: openSecretStore({ keyFile: keyFile() }),
    maxFindByIds: 100,
  };
  unused = (await putSiteOnRecord(deps, simulator.call)).map(({ machine_id }) => machine_id);
  const [known] = await simulator.call<{ name: string; kubeconfig: string }[]>("GET", "/clusters");
  if (!known) throw new Error("the simulator has no cluster");
  cluster = targetOfKubeconfig(known.name, known.kubeconfig);
  await prepared.close();
}, 90_000);
afterAll(async () => {
  kubernetes.close();
  await bench.close();
  await prepared.drop();
});

/** What one test has to itself, also when it is tried again. */
interface Own {
  readonly database: TestDatabase;
  readonly machineId: string;
  victim(failPoint: string): StartedProcess;
  victimThatIsUp(failPoint: string): Promise<ServerProcess>;
  successor(): Promise<ServerProcess>;
}

async function openOwn(onTestFinished: (close: () => Promise<void>) => void): Promise<Own> {
  const machineId = unused.shift();
  if (machineId === undefined) throw new Error("there is no machine left");
  const own = openProcessBench();
  const database = await createTestDatabase({ clone: prepared });
  onTestFinished(async () => {
    await own.close();
    await database.drop();
  });
  const server = (name: string, more: Readonly<Record<string, string>> = {}): ServerOptions => ({
    command: "serve",
    name,
    databaseUrl: database.url,
    env: { ...settings(), ...more },
  });
  const dying = (failPoint: string) => server("victim", { MILLWRIGHT_FAILPOINT: failPoint });
  return {
    database,
    machineId,
    victim: (failPoint) => spawnServer(own, dying(failPoint)),
    victimThatIsUp: (failPoint) => startServerProcess(own, dying(failPoint)),
    successor: () => startServerProcess(own, server("successor")),
  };
}

const died = async ({ process }: ServerProcess, failPoint: string) => {
  await eventually(async () => process.hasExited(), { what: `it dies at ${failPoint}`, seen: process.transcript });
  expect(await process.exited).toEqual({ code: null, signal: "SIGKILL" });
};

/** As if the time had passed: their owner is dead, and makes no call any more. */
async function letLeasesEnd({ db }: TestDatabase): Promise<void> {
  await db.execute("update condition_looks set due_at = now() where lease_owner is not null");
  await db.execute(
    "update work set lease_until = now() - interval '1 ms', wake_at = least(wake_at, now()) where lease_owner is not null",
  );
}

interface Row {
  readonly state: string;
  readonly conditions: readonly { type: string; status: boolean; reason: string }[];
}

async function machineOf({ db }: TestDatabase, id: string): Promise<Row> {
  const [row] = await db.query<Row & object>("select state, conditions from machines where id = $1", [id]);
  if (!row) throw new Error(`there is no ${id}`);
  return row;
}

const holds = ({ conditions }: Row, type: string) => conditions.some((each) => each.type === type && each.status);

describe("a server killed at", { concurrent: true, timeout: 120_000 }, () => {
  test.for(["condition-checks:claimed:machine", "condition-checks:released:machine", "changes:written:machine"])(
    "%s leaves no condition lost or told twice",
    async (failPoint, { onTestFinished }) => {
      const own = await openOwn(onTestFinished);
      const { database, machineId: id } = own;
      const dying = own.victim(failPoint);
      expect(await dying.exited, dying.transcript()).toEqual({ code: null, signal: "SIGKILL" });
      await letLeasesEnd(database);
      const successor = await own.successor();
      await eventually(
        async () => {
          const machine = await machineOf(database, id);
          return machine.state === "READY" && holds(machine, "BMCReachable") && holds(machine, "Reachable");
        },
        { what: `${id} was looked at`, seen: successor.process.transcript },
      );
      const told = await database.db.query<{ data: { conditions: { type: string }[] } }>(
        "select data from journal where kind = 'machine' and id = $1 and type = 'conditions_changed'",
        [id],
      );
      const types = told.flatMap(({ data }) => data.conditions.map(({ type }) => type));
      expect(types.filter((type) => type === "BMCReachable")).toHaveLength(1);
      successor.process.signal("SIGTERM");
      expect(await successor.process.exited).toEqual({ code: 0, signal: null });
    },
  );

  const drains = [
    "controller:handled:machine:MAINTENANCE",
    "committer:after:machine:MAINTENANCE",
    "controller:handled:machine:MAINTENANCE@2",
    "controller:handled:machine:MAINTENANCE@3",
  ];
  test.for(drains)(
    "%s while a node is drained has it drained by the next one, and handed back afterwards",
    async (failPoint, { onTestFinished }) => {
      const own = await openOwn(onTestFinished);
      const { database, machineId: id } = own;
      await simulator.call("POST", `/devices/${id}/join`, { cluster: cluster.name });
      const dying = await own.victimThatIsUp(failPoint);
      await eventually(async () => holds(await machineOf(database, id), "InCustomerCluster"), {
        what: `${id} has joined`,
      });
      await eventually(async () => (await machineOf(database, id)).state === "READY", { what: `${id} is READY` });
      const lifecycle = "millwright.v1.MachineLifecycleService";
      await dying.call(`${lifecycle}/EnterMaintenance`, { machineId: id }, token).catch(() => undefined);
      await died(dying, failPoint);
      await letLeasesEnd(database);

      const successor = await own.successor();
      await eventually(async () => holds(await machineOf(database, id), "Drained"), {
        what: `${id} is drained`,
        seen: successor.process.transcript,
      });
      expect(await kubernetes.can.nodes.listWorkloads(cluster, id, aCall())).toEqual([]);
      await successor.ask(`${lifecycle}/ExitMaintenance`, { machineId: id }, token);
      await eventually(
        async () => {
          const nodes = await kubernetes.can.nodes.listNodes(cluster, aCall());
          return nodes.find(({ name }) => name === id)?.unschedulable === false;
        },
        { what: `${id} takes pods again`, seen: successor.process.transcript },
      );
      successor.process.signal("SIGTERM");
      expect(await successor.process.exited).toEqual({ code: 0, signal: null });
    },
  );
});
