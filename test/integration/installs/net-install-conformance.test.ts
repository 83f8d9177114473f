import pg from "pg";
import { afterEach } from "vitest";
import {
  describeNetInstall,
  type NetInstallBench,
  type Refusal,
} from "../../../src/capabilities/conformance/net-install.ts";
import type { NetInstallOrder } from "../../../src/capabilities/net-install.ts";
import { type Effect, move, order as ordering, require as requiring } from "../../../src/kernel/effects.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { installLifecycle } from "../../../src/lifecycles/install/lifecycle.ts";
import { machineLifecycle } from "../../../src/lifecycles/machine/lifecycle.ts";
import { printStamp } from "../../../src/runs/steps/facts/install-stamp.ts";
import { openInstallOrders } from "../../../src/services/install/orders.ts";
import { createWorkflow } from "../../../src/services/install/workflows.ts";
import { registerMachine, type SpecInput } from "../../../src/services/machine/machines.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import type { TestDatabase } from "../../support/database.ts";
import { databaseUrl } from "../../support/database-url.ts";
import { dumpTables } from "../api/forge-under-test.ts";
import { type InstallsUnderTest, startInstalls } from "./installs-under-test.ts";

const caller = { name: "tester", roles: ["admin"], address: null };
const MACHINE = "m-1";
const MAC = "02:00:00:00:00:11";
const OTHERS_MAC = "02:00:00:00:00:22";
const DIGEST = `sha256:${"0".repeat(64)}`;
const spec: SpecInput = {
  provider: "",
  serial: "S-1",
  macAddresses: [MAC],
  rack: "",
  slot: "",
  location: "",
  customerId: "",
  targetClusterRef: "",
  sshEndpoint: "",
  sshHostKey: "",
  jumpHosts: [],
  bmcEndpoint: "192.0.2.11",
  bmcProtocol: "",
  bmcTlsTrust: "",
};
const workflow = {
  id: "one",
  name: "One",
  description: "",
  osFamily: "linux",
  architecture: "x86_64",
  bootMode: "any",
  boot: {
    method: "image",
    kernel_url: "/files/vmlinuz",
    initrd_url: "/files/initrd",
    cmdline: "",
    image_url: "/files/image",
    image_digest: DIGEST,
    target_device: "",
  },
  steps: [],
  nextState: "installed",
} as const;
const order: NetInstallOrder = {
  machineId: MACHINE,
  runId: "run-1",
  orderId: "1",
  stamp: printStamp({ image: "ubuntu", digest: DIGEST, machine: MACHINE, serial: "S-1", token: "1" }),
  workflowId: "one",
  digest: DIGEST,
  mac: MAC,
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** As the outcome of a look at the machine. */
async function commitWith({ db, deps }: InstallsUnderTest, effects: readonly Effect[]): Promise<void> {
  const result = await db.transaction(async (tx) => {
    const [thing] = (await machineStore.load(tx, [MACHINE])).things;
    if (!thing) throw new Error("there is no machine");
    return commitUnits(tx, deps.stores, [{ kind: "machine", thing, facts: {}, effects, actor: "tester" }]);
  });
  if (result[0]?.type !== "committed") throw new Error(`it was not written: ${result[0]?.type}`);
}

/** The record as those see it who can lose it, and whoever takes it away. */
async function openRecord({ url, name }: TestDatabase) {
  const db = openDatabase(url, {
    log: silentLog,
    applicationName: "net-install",
    statementTimeout: milliseconds(200),
  });
  const admin = new pg.Client({ connectionString: databaseUrl(url, "postgres") });
  const holder = new pg.Client({ connectionString: url });
  await Promise.all([admin.connect(), holder.connect()]);
  holder.on("error", () => undefined);
  let isAway = false;
  const rename = async (from: string, to: string) => {
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [from]);
    await admin.query(`alter database ${pg.escapeIdentifier(from)} rename to ${pg.escapeIdentifier(to)}`);
  };
  const putRight = async () => {
    if (isAway) await rename(`${name}_away`, name);
    else await holder.query("rollback");
    isAway = false;
  };
  closing.push(async () => {
    await db.close();
    await holder.end();
    await admin.end();
  });
  return {
    db,
    async cause(trouble: "is_gone" | "hangs") {
      isAway = trouble === "is_gone";
      if (isAway) return rename(name, `${name}_away`);
      await holder.query("begin; lock table installs, install_workflows in access exclusive mode");
    },
    putRight,
  };
}

async function setUp(): Promise<NetInstallBench> {
  const it = await startInstalls();
  closing.push(() => it.close());
  const record = await openRecord(it.database);
  await registerMachine(it.deps, caller, { id: MACHINE, labels: {}, spec });
  await createWorkflow(it.deps, caller, workflow);

  const refusing: Readonly<Record<Refusal, () => Promise<{ order: NetInstallOrder; says: string }>>> = {
    no_such_workflow: async () => ({ order: { ...order, workflowId: "two" }, says: "there is no workflow two" }),
    another_image: async () => ({
      order: { ...order, digest: `sha256:${"1".repeat(64)}` },
      says: `workflow One installs ${DIGEST}`,
    }),
    no_address: async () => ({ order: { ...order, mac: null }, says: "has no MAC address on record" }),
    address_of_another: async () => {
      const other = { ...spec, serial: "S-2", macAddresses: [OTHERS_MAC], bmcEndpoint: "192.0.2.12" };
      await registerMachine(it.deps, caller, { id: "m-2", labels: {}, spec: other });
      return { order: { ...order, mac: OTHERS_MAC }, says: "belongs to machine m-2" };
    },
    async retired() {
      await it.call("GET", `/api/v1/boot?mac=${MAC}`, undefined, { as: null });
      await it.place(MACHINE, "retired");
      return { order, says: "is retired" };
    },
  };

  return {
    netInstall: openInstallOrders(record),
    order,
    refuse: (why) => refusing[why](),
    place: (what) => commitWith(it, [requiring(machineLifecycle, MACHINE), ordering(installLifecycle, MACHINE, what)]),
    endRun: ({ runId }) =>
      commitWith(it, [move(installLifecycle, MACHINE, "run_ended", { message: `run ${runId} ended` })]),
    async boot() {
      const { text } = await it.call("GET", `/api/v1/boot?mac=${MAC}`, undefined, { as: null });
      return /millwright\.token=(\S+)/.exec(text)?.[1];
    },
    async report({ status, progress, error, token }) {
      await it.report(MAC, status, {
        ...(progress !== undefined && { installation_progress: progress }),
        ...(error !== undefined && { installation_error: error }),
        ...(token !== undefined && { report_token: token }),
      });
    },
    records: () => dumpTables(it.db),
    cause: record.cause,
    putRight: record.putRight,
  };
}

describeNetInstall("the server itself", setUp);
