import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NetInstallOrder } from "../../../src/capabilities/net-install.ts";
import type { Capability } from "../../../src/capabilities/provider.ts";
import { forgetOld } from "../../../src/engine/retention.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { hours, seconds } from "../../../src/kernel/time/duration.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { createCloudInit } from "../../../src/services/catalog/cloud-init.ts";
import { createCluster, updateCluster } from "../../../src/services/catalog/clusters.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { deleteProfile, putProfile } from "../../../src/services/catalog/rack-profiles.ts";
import { insertHealthReport, removeHealthReport } from "../../../src/services/device/health-reports.ts";
import { enrolAgent } from "../../../src/services/fleet/agent/enrol.ts";
import { deleteProfile as removeFleetProfile, setProfile } from "../../../src/services/fleet/profiles.ts";
import { deleteRoceAssignment, setRoceAssignments } from "../../../src/services/fleet/roce.ts";
import type { MaasGate } from "../../../src/services/fleet/site-target.ts";
import { addSite, changeSite, deleteSite } from "../../../src/services/fleet/sites.ts";
import { bootNode } from "../../../src/services/install/boot/boot.ts";
import { createGroup, deleteGroup } from "../../../src/services/install/device-groups.ts";
import { patchInstall, registerInstall } from "../../../src/services/install/installs.ts";
import { changeInstallState } from "../../../src/services/install/state/state-changes.ts";
import { createWorkflow, deleteWorkflow } from "../../../src/services/install/workflows.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { registerMachine, type SpecInput, updateMachine } from "../../../src/services/machine/machines.ts";
import { deleteSavedView, saveView } from "../../../src/services/overview/saved-views.ts";
import { setPowerShelfCredentials } from "../../../src/services/power-shelf/credentials.ts";
import {
  createPowerShelf,
  deletePowerShelf,
  forceDeletePowerShelf,
  refreshPowerShelf,
  setPowerShelfMaintenance,
} from "../../../src/services/power-shelf/power-shelves.ts";
import { settleParked } from "../../../src/services/restore/settle.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { startNextAttempt } from "../../../src/services/run/operator-actions.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { startRun } from "../../../src/services/run/starts.ts";
import { rotateSecretKey } from "../../../src/services/system/secret-keys.ts";
import { openSession, revokeSession } from "../../../src/services/system/sessions.ts";
import { createToken, revokeToken } from "../../../src/services/system/tokens.ts";
import { countRefusedCalls } from "../../../src/store/access/refused-calls.ts";
import { noteKeys } from "../../../src/store/access/secret-keys.ts";
import { openSecretStore, type SecretStore } from "../../../src/store/access/secrets.ts";
import { noteRejected, openSignInDigest } from "../../../src/store/access/sign-in-ledger.ts";
import { bindCredentials } from "../../../src/store/device/bind-credentials.ts";
import { endExpiredReports } from "../../../src/store/device/health-changes.ts";
import { dismissAgent } from "../../../src/store/fleet/agents.ts";
import { currentEnrolment } from "../../../src/store/fleet/enrolment.ts";
import { putObservations } from "../../../src/store/fleet/observations.ts";
import { claimSites, releaseSite } from "../../../src/store/fleet/site-watches.ts";
import { installOrders } from "../../../src/store/install/orders.ts";
import { acquire, releaseAll } from "../../../src/store/lifecycle/claims/claims.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { sealNext } from "../../../src/store/lifecycle/seals/journal-seals.ts";
import { collectThingStores, storeOf, type ThingKey } from "../../../src/store/lifecycle/things.ts";
import { wake } from "../../../src/store/lifecycle/work.ts";
import { putMachineSshCredentials } from "../../../src/store/machine/credentials.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { type Database, openDatabase } from "../../../src/store/postgres/database.ts";
import { noteReplica } from "../../../src/store/replica/replicas.ts";
import { sortParked } from "../../../src/store/restore/parked.ts";
import { RestoreWatch } from "../../../src/store/restore/restore-watch.ts";
import { findLiveReview } from "../../../src/store/restore/reviews.ts";
import { keepDocuments } from "../../../src/store/run/run-documents.ts";
import { keepScripts } from "../../../src/store/run/script-texts.ts";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { allThings, listingsOf } from "../../../src/wiring/things/all-things.ts";
import { wishFor } from "../claims.ts";
import { testSealKey } from "../journal/sealed-journal.ts";
import { bareStores } from "./bare-stores.ts";

/** Of a process in a data directory that all writers of this test file's database have for themselves. */
const witness = (restored: string | null) =>
  new RestoreWatch({
    replica: "writer",
    directory: mkdtempSync(join(tmpdir(), "millwright-witness-")),
    log: silentLog,
    restored,
  });

const caller = { name: "tester", roles: ["admin"], address: null };
const signIn = {
  name: "pat",
  roles: ["viewer"],
  credential: { kind: "jwt", ref: "https://id.example", grounds: ["staff"] },
  address: "192.0.2.1",
  userAgent: "a browser",
} as const;
const shelf = {
  name: "",
  rackId: undefined,
  bmcEndpoint: "192.0.2.1",
  bmcUsername: "root",
  bmcPassword: "secret",
  bmcScheme: "",
  trust: "pin",
} as const;
const shelfOne = { kind: "power_shelf", id: "one", field: "id" } as const;
const report = { source: "probe", observedAt: null, triggeredBy: null, successes: [], alerts: [] } as const;
const leak = {
  id: "Leak",
  target: null,
  inAlertSince: null,
  message: "wet",
  tenantMessage: null,
  classifications: [],
} as const;

const spec: SpecInput = {
  provider: "",
  serial: "S-1",
  macAddresses: ["02:00:00:00:00:11", "02:00:00:00:00:12"],
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
const image = { kind: "iso", location: "http://192.0.2.1/a.iso", digest: `sha256:${"0".repeat(64)}`, successProof: "" };

const listings = listingsOf(allThings);
const runDeps = (deps: ServiceDeps): RunDeps => ({
  ...deps,
  steps: allSteps,
  runbooks: loadRunbooks(),
  capabilitiesOf: () => new Set<Capability>(["reset", "system", "exec"]),
  clusterProbes: null,
  takesSeeds: () => true,
  seedsAt: null,
});

const workflow = {
  id: "one",
  name: "One",
  description: "",
  osFamily: "linux",
  architecture: "x86_64",
  bootMode: "any",
  boot: { method: "chain", chain_url: "/files/a" },
  steps: [],
  nextState: "installed",
} as const;
const part = { count: 1, name: null, vendor: null, slotIds: [], watts: null };
/** Nothing of it is called: sites are recorded untried. */
const anyMaas = { checkKey: () => {} } as unknown as MaasGate;
const fleetSite = {
  name: "lab",
  url: "https://192.0.2.1:5443/MAAS",
  apiKey: "a:b:c",
  description: "",
  retainInMaas: false,
  allowHttp: false,
  skipProbe: true,
};
const fleetNode = { kind: "fleet_node", id: "fn-1" };
const enrolmentOf = (secrets: SecretStore) =>
  currentEnrolment(secrets, { nodeId: fleetNode.id, enrollment: null, ttl: hours(1), now: new Date() });
const rackProfile = {
  name: "small",
  hardwareType: null,
  topology: null,
  class: "prod",
  compute: part,
  switches: part,
  powerShelves: part,
} as const;
const group = {
  name: "one",
  description: "",
  parentId: null,
  defaultWorkflowId: null,
  autoProvision: null,
  autoPromote: null,
} as const;

const order = {
  machineId: "m-1",
  runId: "run-1",
  orderId: "1",
  stamp: "token=1\n",
  workflowId: workflow.id,
  digest: image.digest,
  mac: "02:00:00:00:00:11",
};
const placeOrder = ({ db, stores }: ServiceDeps, what: NetInstallOrder) =>
  db.transaction(async (tx) => {
    const key = { kind: "install", id: what.machineId };
    await lockThings(tx, [key, { kind: "machine", id: what.machineId }]);
    const orders = [{ ...key, order: what, by: `run ${what.runId}` }];
    await installOrders.place(tx, { stores, commit: commitUnits, orders });
  });
const node = { arch: "x86_64", bootMode: "bios", groupId: null, facts: {} } as const;
const spareSpec: SpecInput = { ...spec, serial: "S-2", macAddresses: ["02:00:00:00:00:22"], bmcEndpoint: "192.0.2.12" };

const rack = { kind: "rack", id: "rack-1" };
const ask = (db: Database, claimant: ThingKey, machines: readonly string[]) =>
  db.transaction(async (tx) => {
    const targets = machines.map((id) => ({ kind: "machine", id }));
    await lockThings(tx, [claimant, ...targets]);
    await acquire(tx, [{ targets, claimant, holder: claimant, reason: "maintenance" }]);
  });

/** What callers, and the clock, have written to the database outside the controller's own work. */
export const WRITES = {
  "create shelf one": (deps) =>
    createPowerShelf(deps, caller, { ...shelf, id: "one", bmcMac: "02:00:00:00:00:01", requestId: "request-1" }),
  "create shelf two": (deps) =>
    createPowerShelf(deps, caller, { ...shelf, id: "two", bmcMac: "02:00:00:00:00:02", requestId: "request-2" }),
  "give shelf one its credentials again": (deps) =>
    setPowerShelfCredentials(deps, caller, { id: "one", bmcUsername: "root", bmcPassword: "wrong" }),
  // With one that its credentials have kept of an earlier one.
  "pin its certificate": async ({ db }) => {
    await db.execute(`update power_shelves set facts = facts || '{"certificateFingerprint": "AA"}' where id = 'one'`);
    await db.execute("update secrets set bound_pin = 'BB' where name like 'bmc/%'");
  },
  "forget its certificate": (deps) => refreshPowerShelf(deps, caller, { id: "one", forgetCertificate: true }),
  // As a replica of an earlier version leaves them.
  "unbind its credentials": async ({ db }) => {
    await db.execute("update secrets set bound_to = null, bound_nonce = null where name like 'bmc/%'");
  },
  "bind the credentials": async ({ db }) => {
    await bindCredentials(db);
  },
  "mark shelf one for deletion": (deps) => deletePowerShelf(deps, caller, "one"),
  "ask for maintenance of shelf one": (deps) =>
    setPowerShelfMaintenance(deps, caller, { powerShelfIds: ["one"], operation: "power_off", reference: undefined }),
  "remove shelf one": (deps) => forceDeletePowerShelf(deps, caller, "one"),
  "report on shelf one": (deps) => insertHealthReport(deps, caller, { device: shelfOne, report, mode: "merge" }),
  "report on the machine": (deps) =>
    insertHealthReport(deps, caller, {
      device: { kind: "machine", id: "m-1", field: "id" },
      report: { ...report, alerts: [leak] },
      mode: "merge",
    }),
  "take the report back": (deps) => removeHealthReport(deps, caller, { device: shelfOne, source: "probe" }),
  "keep a secret": ({ db, secrets }) => db.transaction((tx) => secrets.put(tx, "a/secret", "hunter2")),
  "drop the secret": ({ db, secrets }) => db.transaction((tx) => secrets.remove(tx, "a/secret")),
  "tell of two secret keys": ({ db }) => noteKeys(db, "replica-1", ["0000000000000001", "0000000000000002"]),
  "change the secret key": async (deps) => {
    await rotateSecretKey(deps, caller, "0000000000000002");
  },
  "say which secret keys there are": ({ db, secrets }) => secrets.followKeys(db, "replica-1"),
  "change to the newest secret key": async (deps) => {
    await rotateSecretKey(deps, caller, "");
  },
  "encrypt its secrets again": async ({ db, secrets }) => {
    await secrets.encryptAgain(db, { after: "", most: 10 });
  },
  "create a token": (deps) => createToken(deps, caller, { name: "pat", roles: ["viewer"], expiresAt: null }),
  "revoke all tokens": async (deps) => {
    for (const { id } of await deps.db.query<{ id: string }>("select id from tokens"))
      await revokeToken(deps, caller, id);
  },
  "open a session": (deps) => openSession(deps, signIn, { lifetime: hours(12), most: 1 }),
  "open a session of long ago": async (deps) => {
    const { id } = await openSession(deps, signIn, { lifetime: hours(12), most: 1 });
    await deps.db.execute("update console_sessions set expires_at = now() - interval '31 days' where id = $1", [id]);
  },
  "end all sessions": async (deps) => {
    for (const { id } of await deps.db.query<{ id: string }>("select id from console_sessions"))
      await revokeSession(deps, caller, id);
  },
  "keep a view": (deps) =>
    saveView({ ...deps, listings }, caller, {
      ...{ kind: "machine", name: "mine", filter: "phase=READY", orderBy: "rack", groupBy: ["rack"] },
    }),
  "delete the view": (deps) => deleteSavedView({ ...deps, listings }, caller, "machine", "mine"),
  "register a machine": (deps) => registerMachine(deps, caller, { id: "m-1", labels: {}, spec }),
  "replace its MAC addresses": (deps) =>
    registerMachine(deps, caller, { id: "m-1", labels: {}, spec: { ...spec, macAddresses: ["02:00:00:00:00:13"] } }),
  "boot other hardware with its address": (deps) =>
    bootNode(
      deps,
      { autoRegister: true, defaultGroupId: null, eraser: null },
      {
        mac: spec.macAddresses[0] ?? "",
        hardware: { serialNumber: "another" },
        server: "http://192.0.2.1",
        address: null,
      },
    ),
  "give it an SSH endpoint": (deps) =>
    updateMachine(deps, caller, { id: "m-1", labels: {}, spec: { ...spec, sshEndpoint: "192.0.2.21" } }),
  "give it a key": async ({ db, secrets }) => {
    const [machine] = await listMachines(db, { ids: ["m-1"] });
    if (!machine) throw new Error("there is no m-1");
    await db.transaction((tx) => putMachineSshCredentials(tx, secrets, machine, { username: "root", privateKey: "k" }));
    await db.execute(`update machines set facts = facts || '{"sshHostKeySeen": "AA"}' where id = 'm-1'`);
  },
  "move its SSH endpoint": (deps) =>
    updateMachine(deps, caller, { id: "m-1", labels: {}, spec: { ...spec, sshEndpoint: "192.0.2.22" } }),
  "give it credentials": (deps) =>
    setMachineCredentials(deps, caller, {
      machineId: "m-1",
      bmcUsername: "root",
      bmcPassword: "secret",
      sshUsername: "",
      sshPrivateKey: "",
    }),
  "start a run": (deps) =>
    startRun(runDeps(deps), caller, { requestId: "start", machineId: "m-1", type: "REBOOT", planId: "", params: {} }),
  "fail the run": ({ db }) => db.execute("update runs set state = 'FAILED' where attempt = 1"),
  "keep its document": async ({ db, secrets }) => {
    const [run] = await db.query<{ job_id: string }>("select job_id from runs");
    await db.transaction((tx) => keepDocuments(tx, secrets, run?.job_id ?? "", new Map([["users", "#cloud-config"]])));
  },
  "keep the scripts of a run": ({ db }) => {
    const runbooks = loadRunbooks();
    const versions = runbooks.refs.flatMap((ref) => runbooks.find(ref) ?? []).slice(0, 2);
    return db.transaction((tx) => keepScripts(tx, versions, ({ ref, digest }) => runbooks.findVersion(ref, digest)));
  },
  "retry the run": async (deps) => {
    const [run] = await deps.db.query<{ id: string }>("select id from runs where attempt = 1");
    await startNextAttempt(runDeps(deps), caller, "retry", { runId: run?.id ?? "", requestId: "retry" });
  },
  "create a plan": (deps) =>
    createPlan(deps, caller, {
      planId: "mine",
      displayName: "",
      steps: [{ name: "reboot", kind: "reboot", payload: {} }],
    }),
  "create a cluster": (deps) =>
    createCluster(deps, caller, { name: "one", apiUrl: "https://192.0.2.1:6443", kubeconfig: "secret" }),
  "replace its kubeconfig": (deps) =>
    updateCluster(deps, caller, { name: "one", kubeconfig: "another", otherCluster: false }),
  "create a cloud-init document": (deps) => createCloudInit(deps, caller, { name: "one", content: "#cloud-config\n" }),
  "create an image": (deps) => createImage(deps, caller, { ...image, name: "one" }),
  "create a workflow": (deps) => createWorkflow(deps, caller, workflow),
  "delete the workflow": (deps) => deleteWorkflow(deps, caller, workflow.id),
  "put a rack profile": (deps) => putProfile(deps, caller, rackProfile),
  "delete the rack profile": (deps) => deleteProfile(deps, caller, rackProfile.name),
  "add a fleet site": (deps) => addSite({ ...deps, maas: anyMaas }, caller, fleetSite),
  "change the fleet site": (deps) =>
    changeSite({ ...deps, maas: anyMaas }, caller, { ...fleetSite, apiKey: "d:e:f", description: "another" }),
  "remove the fleet site": (deps) => deleteSite(deps, caller, fleetSite.name),
  "set a fleet profile": (deps) => setProfile(deps, caller, { site: fleetSite.name, name: "h100", policy: {} }),
  "assign RoCE addresses": (deps) =>
    setRoceAssignments(deps, caller, {
      site: fleetSite.name,
      nodes: [{ hostname: "gpu-1", links: [{ port: "ib0", subnet: "10.10.0.0/24", ipAddress: "10.10.0.1" }] }],
    }),
  "remove the RoCE assignment": (deps) =>
    deleteRoceAssignment(deps, caller, { site: fleetSite.name, hostname: "gpu-1" }),
  "put a fleet node on record": ({ db, secrets, stores }) =>
    db.transaction(async (tx) => {
      await lockThings(tx, [fleetNode]);
      const row = { site: fleetSite.name, profile: "h100", sku: "gpu8", hostname: "gpu-1", mode: "maas" };
      const more = { machine_id: "m-1", request_id: "one", fingerprint: "", created_by: "test" };
      const { enrollment } = enrolmentOf(secrets);
      await create(tx, storeOf(stores, fleetNode.kind), {
        ...{ id: fleetNode.id, actor: "test" },
        row: { ...row, ...more, facts: { enrollment } },
      });
    }),
  "enrol its agent": async (deps) => {
    const { token } = enrolmentOf(deps.secrets);
    await enrolAgent(deps, { nodeId: fleetNode.id, token, nonce: "0123456789abcdef", address: null });
  },
  "dismiss its agent": ({ db }) => dismissAgent(db, fleetNode.id),
  "remove the fleet profile": (deps) => removeFleetProfile(deps, caller, fleetSite.name, "h100"),
  "bind a fleet node": ({ db }) =>
    db.transaction(async (tx) => {
      await tx.execute(
        `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, facts)
         values ('fn-1', $1, 'h100', 'gpu8', 'gpu-1', 'maas', 'm-1', 'r', '', 'kim', 'active', '{"systemId":"abc123"}')`,
        [fleetSite.name],
      );
    }),
  "claim the fleet site": async ({ db }) => {
    await claimSites(db, { owner: "somebody", limit: 4, leaseFor: seconds(60) });
  },
  "release the fleet site": ({ db }) =>
    releaseSite(db, { site: fleetSite.name, epoch: 1, after: seconds(20), listed: { machines: 1, ago: seconds(0) } }),
  "record what MAAS shows": ({ db }) =>
    db.transaction((tx) =>
      putObservations(tx, fleetSite.name, [
        {
          nodeId: "fn-1",
          systemId: "abc123",
          observed: "absent",
          machine: undefined,
          drift: { is: "fine" },
          idleRun: null,
        },
      ]),
    ),
  "create a group": (deps) => createGroup(deps, caller, group),
  "delete the group": async (deps) => {
    for (const { id } of await deps.db.query<{ id: string }>("select id from device_groups"))
      await deleteGroup(deps, caller, id);
  },
  "let a run hold the machine": ({ db }) =>
    db.transaction(async (tx) => {
      await acquire(tx, [wishFor({ kind: "machine", id: "m-1" }, { kind: "run", id: "run-1" }, "RUNNING")]);
    }),
  "let a second run wait for it": ({ db }) => ask(db, { kind: "run", id: "run-2" }, ["m-1"]),
  "let a rack wait for two machines": ({ db }) => ask(db, rack, ["m-1", "m-2"]),
  "let the rack want another one": ({ db }) => ask(db, rack, ["m-1", "m-3"]),
  "let the rack take both": ({ db }) => ask(db, rack, ["m-1", "m-2"]),
  "let the run end": ({ db }) =>
    db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "machine", id: "m-1" }]);
      await wake(tx, await releaseAll(tx, [{ kind: "run", id: "run-1" }]));
    }),
  "order an install": (deps) => placeOrder(deps, order),
  "order it again": (deps) => placeOrder(deps, { ...order, orderId: "2", stamp: "token=2\n" }),
  "bring a node into use": async (deps) => {
    const id = await registerInstall(deps, caller, { ...node, mac: "02:00:00:00:00:21" });
    await patchInstall(deps, caller, id, { hardware: {}, workflowId: workflow.id });
    for (const state of ["pending", "installing", "installed", "active"] as const)
      await changeInstallState(deps, caller, id, { state, comment: "", force: false });
  },
  "register a spare": (deps) => registerMachine(deps, caller, { id: "spare", labels: {}, spec: spareSpec }),
  "let the spare take its place": (deps) =>
    changeInstallState(deps, caller, "m-020000000021", {
      state: "migrating",
      comment: "",
      force: false,
      replacementId: "spare",
    }),
  "call that off": (deps) =>
    changeInstallState(deps, caller, "m-020000000021", { state: "active", comment: "", force: false }),
  "note a rejected sign-in": async ({ db, secrets }) =>
    noteRejected(
      db,
      await openSignInDigest(db, secrets),
      { endpoint: "192.0.2.1:443", username: "root", password: "wrong" },
      { rejectionsToStop: 2, coolDown: hours(1) },
    ),
  "leave an old task behind": ({ db }) =>
    db.transaction(async (tx) => {
      await tx.execute(
        `insert into fleet_tasks (id, node_id, task_type, expires_at, state, state_since)
         values ('ft-1', 'fn-1', 'node.drain', now(), 'completed', now() - interval '2 days')`,
      );
    }),
  "count refused calls of long ago": ({ db }) =>
    countRefusedCalls(db, [
      {
        ...{ minute: new Date(0), lastAt: new Date(0), address: "192.0.2.1", name: "", method: "GET /metrics" },
        ...{ outcome: "sign_in_failed", calls: 3 },
      },
    ]),
  "write down which database it is": ({ db }) => witness(null).check(db),
  "find the database restored": ({ db }) => witness("monday").check(db),
  "have the database confirm itself": async ({ db }) => {
    const watch = witness(null);
    await watch.check(db);
    await watch.beat(db);
  },
  "sort what is parked": async ({ db, stores }) => {
    const review = await findLiveReview(db);
    await sortParked(db, stores, review?.id ?? "", new AbortController().signal);
  },
  "open the review": ({ db }) => db.execute("update restore_reviews set state = 'open'"),
  "abandon the run": async (deps) => {
    const [run] = await deps.db.query<{ id: string }>("select id from runs");
    const things = [{ kind: "run", id: run?.id ?? "" }];
    await settleParked(runDeps(deps), caller, { things, verdict: "abandoned" }, new AbortController().signal);
  },
  "leave an old witness behind": ({ db }) =>
    db.execute("insert into database_witnesses (id, beat, seen_at) values ('old', 1, now() - interval '2 years')"),
  "tell of a replica": ({ db }) =>
    noteReplica(db, { id: "r-1", host: "here", version: "1", commit: "", schema: "" }, { stopping: false }),
  "forget what is old": ({ db }) =>
    forgetOld(
      { db, log: silentLog, retention: hours(24), refusalsKept: hours(24), sealKey: testSealKey },
      new AbortController().signal,
    ),
  "seal the journal": async ({ db }) => sealNext(db, await testSealKey(), { now: new Date(0), most: 100 }),
  "end expired reports": ({ db, stores }) => endExpiredReports(db, stores),
} as const satisfies Readonly<Record<string, (deps: ServiceDeps) => Promise<unknown>>>;

export type Write = keyof typeof WRITES;

/** As a process of its own: does the writes that it is told to, so that a test can have it die in the middle of one. */
if (process.argv[1] === import.meta.filename) {
  const [url = "", keyFile = "", ...writes] = process.argv.slice(2);
  const db = openDatabase(url, { log: silentLog, applicationName: "writer" });
  const secrets = openSecretStore({ keyFile });
  for (const write of writes)
    await WRITES[write as Write]({ db, secrets, stores: collectThingStores(bareStores), maxFindByIds: 100 });
  await db.close();
}
