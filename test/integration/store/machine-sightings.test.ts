// @module-tag race
import { expect, onTestFinished, test } from "vitest";
import type { MachineVitals } from "../../../src/capabilities/vitals.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import { interpretSighting } from "../../../src/lifecycles/machine/observation.ts";
import type { Sighting } from "../../../src/lifecycles/machine/sighting.ts";
import { changeHealth } from "../../../src/store/device/health-changes.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { claimChecks } from "../../../src/store/machine/condition-checks.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { recordSightings } from "../../../src/store/machine/sightings.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase } from "../../support/database.ts";

const nowhere = { is: "nowhere", reason: "NoEndpoint", message: "" } as const;
const showing = (hostKey: string): Sighting => ({
  ssh: { is: "seen", what: { hostKey }, at: new Date() },
  bmc: nowhere,
  node: nowhere,
  alerts: [],
});

test("of two looks at once that see different host keys the first to write is believed, and the other finds its key refused", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { db } = database;
  await db.query(
    "insert into machines (id, provider, state, ssh_endpoint) values ('m-1', 'datacenter', 'READY', '10.0.0.1')",
  );
  await db.query("update condition_looks set due_at = now()");
  const [check] = await claimChecks(db, { owner: "one", limit: 1, leaseFor: seconds(30) });
  if (!check) throw new Error("nothing is due");
  const load = async (): Promise<Machine> => {
    const [machine] = (await machineStore.load(db, ["m-1"])).things;
    if (!machine) throw new Error("the machine is gone");
    return machine;
  };
  const asBoth = await load();
  const write = (machine: Machine, hostKey: string) => {
    const { observed, facts } = interpretSighting(machine, showing(hostKey), { Reachable: 1 });
    const sighting = { check, machine, observed, facts, alerts: [], inspected: false };
    return db.transaction((tx) => recordSightings(tx, allStores, [sighting], { actor: "test", now: new Date() }));
  };
  expect(await write(asBoth, "ssh-ed25519 AAAAfirst")).toEqual(new Set(["m-1"]));
  expect(await write(asBoth, "ssh-ed25519 AAAAother")).toEqual(new Set());
  expect((await load()).facts.sshHostKeySeen).toBe("ssh-ed25519 AAAAfirst");
  // It looks again, at the machine as it is by now.
  expect(await write(await load(), "ssh-ed25519 AAAAother")).toEqual(new Set(["m-1"]));
  const { facts, conditions } = await load();
  expect(facts.sshHostKeySeen).toBe("ssh-ed25519 AAAAfirst");
  expect(conditions).toContainEqual(expect.objectContaining({ type: "Reachable", reason: "HostKeyChanged" }));
});

test("an alert that came during a check is not ended by what the check says, and the rest of the check is written", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { db } = database;
  const at = new Date().toISOString();
  const ofFan = {
    type: "Degraded",
    status: true,
    reason: "PartNotWell",
    message: "Fan is critical",
    last_transition: at,
  };
  await db.query("insert into machines (id, provider, state, conditions) values ('m-1', 'datacenter', 'READY', $1)", [
    JSON.stringify([ofFan]),
  ]);
  await db.query("update condition_looks set due_at = now()");
  const [check] = await claimChecks(db, { owner: "one", limit: 1, leaseFor: seconds(30) });
  const load = async () => (await machineStore.load(db, ["m-1"])).things[0];
  const machine = await load();
  if (!check || !machine) throw new Error("nothing is due");
  const what = { ailments: [], health: "ok", power: "on", serial: null, systemUuid: null } as unknown as MachineVitals;
  const write = (known: Machine, alerts: string[]) => {
    const sighting: Sighting = { ssh: nowhere, bmc: { is: "seen", what, at: new Date() }, node: nowhere, alerts };
    const { observed, facts } = interpretSighting(known, sighting, {});
    return db.transaction((tx) =>
      recordSightings(tx, allStores, [{ check, machine: known, observed, facts, alerts, inspected: false }], {
        actor: "test",
        now: new Date(),
      }),
    );
  };
  // The check has read the machine and its reports by now.
  const key = { kind: "machine", id: "m-1" };
  const alert = { id: "Leak", target: null, inAlertSince: null, message: "wet", tenantMessage: null };
  await db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    const alerts = [{ ...alert, classifications: [] }];
    const put = { source: "leak", observedAt: null, triggeredBy: null, successes: [], alerts };
    await changeHealth(tx, allStores, [{ key, put, mode: "merge" }], { actor: "monitor", now: new Date() });
  });
  expect((await load())?.basis).toBe(machine.basis);
  expect(await write(machine, [])).toEqual(new Set(["m-1"]));
  const after = (await load()) as Machine;
  expect(after.conditions).toContainEqual(
    expect.objectContaining({ type: "Degraded", reason: "PartNotWell", status: true }),
  );
  expect(after.conditions).toContainEqual(expect.objectContaining({ type: "BMCReachable", status: true }));
  await write(after, ["leak: Leak: wet"]);
  expect((await load())?.conditions).toContainEqual(
    expect.objectContaining({ type: "Degraded", status: true, reason: "OpenAlert", message: "leak: Leak: wet" }),
  );
});
