// @module-tag race
import { expect, onTestFinished, test } from "vitest";
import { seconds } from "../../../src/kernel/time/duration.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import { interpretSighting } from "../../../src/lifecycles/machine/observation.ts";
import type { Sighting } from "../../../src/lifecycles/machine/sighting.ts";
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
    const sighting = { check, machine, observed, facts, inspected: false };
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
