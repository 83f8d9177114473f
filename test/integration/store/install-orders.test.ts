import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { order } from "../../../src/kernel/effects.ts";
import { installLifecycle } from "../../../src/lifecycles/install/lifecycle.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { openInstallOrders } from "../../../src/services/install/orders.ts";
import { createWorkflow, deleteWorkflow } from "../../../src/services/install/workflows.ts";
import { registerMachine, type SpecInput } from "../../../src/services/machine/machines.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

const caller = { name: "tester", roles: ["admin"], address: null };
const MAC = "02:00:00:00:00:11";
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
const what = {
  machineId: "m-1",
  runId: "run-1",
  orderId: "1",
  stamp: "token=1\n",
  workflowId: "one",
  digest: `sha256:${"0".repeat(64)}`,
  mac: MAC as string | null,
};

let database: TestDatabase;
let deps: ServiceDeps;
beforeEach(async () => {
  database = await createTestDatabase();
  const secrets = openSecretStore({ keyFile: join(tmpdir(), "install-orders-key") });
  deps = { db: database.db, stores: allStores, secrets, maxFindByIds: 100 };
  await registerMachine(deps, caller, {
    id: "m-1",
    labels: {},
    spec,
  });
  await createWorkflow(deps, caller, {
    id: "one",
    name: "One",
    description: "",
    osFamily: "linux",
    architecture: "x86_64",
    bootMode: "any",
    boot: { method: "chain", chain_url: "/files/a" },
    steps: [],
    nextState: "installed",
  });
});
afterEach(() => database.drop());

/** The commit of a thing that orders: what became of it. */
const commitWith = (ordered: typeof what) =>
  database.db.transaction(async (tx) => {
    const [thing] = (await machineStore.load(tx, ["m-1"])).things;
    if (!thing) throw new Error("there is no machine");
    const effects = [order(installLifecycle, "m-1", ordered)];
    const unit = { kind: "machine", thing, facts: { serial: `S-${ordered.orderId}` }, effects, actor: "tester" };
    return (await commitUnits(tx, allStores, [unit]))[0];
  });
const installs = () => database.db.query("select state, facts ->> 'orderId' as order, workflow_id from installs");

test("an order is written with the outcome that places it, and once however often it is placed", async () => {
  await openInstallOrders(deps).check(what);
  expect(await commitWith(what)).toEqual({ type: "committed" });
  expect(await installs()).toEqual([{ state: "pending", order: "1", workflow_id: "one" }]);
  const [before] = await database.db.query("select version from installs");
  expect(await commitWith(what)).toEqual({ type: "committed" });
  expect(await database.db.query("select version from installs")).toEqual([before]);
  expect(await openInstallOrders(deps).read(what)).toMatchObject({ state: "ordered" });
});

test.each([
  ["the workflow is gone", { ...what, workflowId: "two" }, "there is no workflow two any more"],
  ["the machine has no address", { ...what, mac: null }, "has no MAC address on record"],
  ["the address is nobody's", { ...what, mac: "02:00:00:00:00:99" }, "is no address of machine"],
])("an order is refused where %s, and the outcome that places it is dropped as a whole", async (_, refused, why) => {
  await expect(openInstallOrders(deps).check(refused)).rejects.toMatchObject({
    disposition: "fail",
    message: expect.stringContaining(why),
  });
  expect(await commitWith(refused)).toEqual({ type: "conflict" });
  expect(await installs()).toEqual([]);
  expect(await database.db.query("select facts ->> 'serial' as serial from machines")).toEqual([{ serial: null }]);
});

test("an order that was possible when it was checked is dropped where it no longer is", async () => {
  await openInstallOrders(deps).check(what);
  await deleteWorkflow(deps, caller, "one");
  expect(await commitWith(what)).toEqual({ type: "conflict" });
  expect(await installs()).toEqual([]);
});

test("an order of a node that was approved long ago expects its next boot", async () => {
  await commitWith(what);
  await database.db.query(
    "update installs set armed_at = now() - interval '30 days', facts = facts || '{\"orderId\":null,\"orderedBy\":null}'",
  );
  expect(await commitWith({ ...what, orderId: "2" })).toEqual({ type: "committed" });
  const armed = await database.db.query(
    "select armed_at > now() - interval '1 hour' as recent, armed_by from installs",
  );
  expect(armed).toEqual([{ recent: true, armed_by: "run" }]);
});
