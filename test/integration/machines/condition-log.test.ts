import { expect, onTestFinished, test } from "vitest";
import type { Cause } from "../../../src/kernel/causes.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import { changeHealth, type HealthChange } from "../../../src/store/device/health-changes.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { observeMachine, recordConditions } from "../../../src/store/machine/conditions.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase } from "../../support/database.ts";

const key = { kind: "machine", id: "m-1" };

/** One machine, and what the log told at levels info and warn. */
async function openBench() {
  const told: object[] = [];
  const noting = (level: string) => (fields: object, text: string) => void told.push({ level, text, ...fields });
  const log = { ...silentLog, info: noting("info"), warn: noting("warn") };
  const database = await createTestDatabase({ log });
  onTestFinished(() => database.drop());
  const { db } = database;
  await db.execute("insert into machines (id, provider, state) values ('m-1', 'datacenter', 'READY')");
  const load = async () => (await machineStore.load(db, ["m-1"])).things[0] as Machine;
  const by = { actor: "test", now: new Date() };
  const report = (change: { put: string } | { end: string }) =>
    db.transaction(async (tx) => {
      await lockThings(tx, [key]);
      const alert = { id: "Leak", target: null, inAlertSince: null, tenantMessage: null, classifications: [] };
      const ofLeak = { source: "leak", observedAt: null, triggeredBy: null, successes: [] };
      const what: HealthChange =
        "put" in change
          ? { key, put: { ...ofLeak, alerts: [{ ...alert, message: change.put }] }, mode: "merge" }
          : { key, ...change };
      await changeHealth(tx, allStores, [what], by);
    });
  return { db, told, load, report, by };
}

test("an alert is told when it makes a machine degraded and when it ends, and not when its words change", async () => {
  const { told, report } = await openBench();
  await report({ put: "wet" });
  await report({ put: "wetter" });
  await report({ end: "leak" });
  const ofMachine = { ...key, condition: "Degraded" };
  expect(told).toEqual([
    { level: "warn", text: "a condition began", ...ofMachine, reason: "OpenAlert", message: "leak: Leak: wet" },
    { level: "info", text: "a condition ended", ...ofMachine, reason: "AlertsEnded", message: "" },
  ]);
});

test("a cluster that keeps us out is told when that begins and when it ends, and not when its words change", async () => {
  const { db, told, load, by } = await openBench();
  const see = (message: string, reason: string, cause?: Cause) =>
    db.transaction(async (tx) => {
      await lockThings(tx, [key]);
      const seen = { type: "InCustomerCluster", status: false, reason, message, ...(cause && { cause }) } as const;
      await recordConditions(tx, await load(), { observed: [seen], ...by });
    });
  const shut: Cause = { code: "credentials_missing", facts: { at: "cluster", name: "prod" } };
  await see("not joined", "NotJoined");
  await see("its kubeconfig cannot be used", "KubeconfigUnusable", shut);
  await see("its kubeconfig still cannot be used", "KubeconfigUnusable", shut);
  await see("not joined", "NotJoined");
  expect(told).toMatchObject([
    {
      level: "warn",
      text: "a machine's cluster cannot be asked about it",
      ...key,
      reason: "KubeconfigUnusable",
      cause: "credentials_missing",
    },
    { level: "info", text: "a machine's cluster answers again", ...key },
  ]);
});

test("a run that needs a person is told, and what calls for nobody is not", async () => {
  const { db, told, load, by } = await openBench();
  const thing = await load();
  const seen = { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "no boot" };
  const observed = observeMachine(thing, [
    seen,
    { type: "Drained", status: true, reason: "NotInCluster", message: "" },
  ]);
  if (!observed) throw new Error("nothing is new");
  await db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    await commitUnits(tx, allStores, [{ kind: "machine", thing, actor: "run r-1", observed }]);
  });
  const { type: condition, status: _, ...words } = seen;
  expect(told).toEqual([{ level: "warn", text: "a condition began", ...key, condition, ...words }]);
  const machine = await load();
  await db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    const ended = { type: "NeedsIntervention", status: false, reason: "Mended", message: "" } as const;
    await recordConditions(tx, machine, { ...by, observed: [ended] });
  });
  expect(told.slice(1)).toMatchObject([{ level: "info", text: "a condition ended", condition, reason: "Mended" }]);
});

test("a condition of which nothing was known and that does not hold is no news", async () => {
  const { db, told, load, by } = await openBench();
  const machine = await load();
  await db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    const fine = { type: "Degraded", status: false, reason: "Healthy", message: "" } as const;
    await recordConditions(tx, machine, { ...by, observed: [fine] });
  });
  expect(told).toEqual([]);
});
