import ssh2 from "ssh2";
import { expect, onTestFinished, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { StepFailure } from "../../../src/kernel/errors.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { createSshProvider } from "../../../src/providers/ssh/ssh-provider.ts";
import { bindCredentials } from "../../../src/store/device/bind-credentials.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { wireStepTargets } from "../../../src/wiring/step-targets.ts";
import { listenAsSshAttacker } from "../../support/credentials/attackers-ssh.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

/** Over SSH no key leaves, but what a step brings along does: it goes to the address that the key was given for, and to no other. */

const JOIN_TOKEN = "canary-join-7d20";
const KEY = ssh2.utils.generateKeyPairSync("ed25519").private;
const SEEN = "SHA256:seen-first";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
});
afterAll(() => site.close());

let count = 0;
const homeOf = (id: string) => ({ sshEndpoint: `${id}.example` });
interface Spec {
  readonly sshEndpoint: string;
  readonly jumpHosts?: { endpoint: string; hostKey: string; username: string }[];
}
async function machineWithKey(): Promise<string> {
  count += 1;
  const id = `m-ssh-${count}`;
  await site.machines.registerMachine({ machine: { machineId: id, spec: homeOf(id) } });
  await give(id);
  return id;
}
const move = (machineId: string, spec: Spec = homeOf(machineId)) =>
  site.machines.updateMachine({ machine: { machineId, spec } }, as("pat"));
const give = (machineId: string) =>
  site.lifecycle.setMachineCredentials({ machineId, sshUsername: "root", sshPrivateKey: KEY }, as("kim"));
const load = async (id: string) => {
  const [machine] = (await machineStore.load(site.db, [id])).things;
  if (!machine) throw new Error(`there is no ${id}`);
  return machine;
};
const targetsOf = () => wireStepTargets({ db: site.db, secrets: site.deps.secrets, runbooks: loadRunbooks() });
const target = async (id: string) =>
  targetsOf()(await load(id))
    .ssh()
    .catch((error: unknown) => error as StepFailure);
const refused = { code: "credentials_not_for_this_address", facts: { at: "ssh" } };
const given = { username: "root", credentials: { privateKey: KEY } };
const learn = (id: string, facts: object) =>
  site.db.execute("update machines set facts = facts || $2::jsonb where id = $1", [id, JSON.stringify(facts)]);

test("an operator replaces a host key by naming another, and drops none: not by leaving it out, nor on the way to another host and back", async () => {
  const id = await machineWithKey();
  const named = { ...homeOf(id), sshHostKey: `SHA256:${"a".repeat(43)}` };
  const update = (spec: object, name: string, role?: string) =>
    site.machines.updateMachine({ machine: { machineId: id, spec } }, as(name, role));
  await update(named, "pat", "operator");
  await update({ ...named, sshHostKey: `SHA256:${"b".repeat(43)}` }, "pat", "operator");
  for (const spec of [homeOf(id), { sshEndpoint: "elsewhere.example" }, {}])
    await expect(update(spec, "pat", "operator")).rejects.toMatchObject({
      message: expect.stringContaining("requires role admin"),
    });
  expect((await load(id)).spec.ssh?.hostKey).toBe(`SHA256:${"b".repeat(43)}`);
  await update(homeOf(id), "kim", "admin");
  expect((await load(id)).spec.ssh?.hostKey).toBeNull();
});

test("a machine that its operator moves to a host of their own is sent no join material there", async () => {
  const attacker = await listenAsSshAttacker();
  const ssh = createSshProvider();
  onTestFinished(async () => {
    ssh.close();
    await attacker.close();
  });
  const join = async (id: string) =>
    ssh.can.exec.run(
      await targetsOf()(await load(id)).ssh(),
      { script: "join", env: { JOIN_TOKEN }, timeout: seconds(5) },
      aCall(),
    );
  const id = await machineWithKey();
  await move(id, { sshEndpoint: `127.0.0.1:${attacker.port}` });
  await expect(join(id)).rejects.toMatchObject(refused);
  expect(attacker.connections()).toBe(0);
  // Given for this address, it goes there: the attacker would have noted it.
  await give(id);
  await join(id).catch(() => undefined);
  expect(attacker.received()).toContain(JOIN_TOKEN);
});

const jump = { endpoint: "jump.example", hostKey: `SHA256:${"A".repeat(43)}`, username: "" };
test.each<[string, (id: string) => Spec]>([
  ["host", (id) => ({ sshEndpoint: `${id}.elsewhere.example` })],
  ["port", (id) => ({ sshEndpoint: `${id}.example:2222` })],
  ["way, over a jump host,", (id) => ({ ...homeOf(id), jumpHosts: [jump] })],
])("a key is not for another %s until it is set again", async (_, change) => {
  const id = await machineWithKey();
  expect(await target(id)).toMatchObject(given);
  await move(id, change(id));
  expect(await target(id)).toMatchObject(refused);
  await give(id);
  expect(await target(id)).toMatchObject(given);
});

test("a machine that comes back is trusted by the host key that was seen there first", async () => {
  const id = await machineWithKey();
  await learn(id, { sshHostKeySeen: SEEN });
  await move(id, { sshEndpoint: `${id}.elsewhere.example` });
  expect((await load(id)).facts.sshHostKeySeen).toBeNull();
  await move(id, { sshEndpoint: `${id}.third.example` });
  await move(id);
  expect((await load(id)).facts.sshHostKeySeen).toBe(SEEN);
  expect(await target(id)).toMatchObject({ ...given, hostKey: SEEN });
});

test("its owner may say where a run has moved it: the key goes along", async () => {
  const id = await machineWithKey();
  await learn(id, { sshHostKeySeen: SEEN, sshMoved: { from: `${id}.example`, to: "192.0.2.71" } });
  expect(await target(id)).toMatchObject({ ...given, address: "192.0.2.71" });
  await move(id, { sshEndpoint: "192.0.2.71" });
  expect(await target(id)).toMatchObject({ ...given, address: "192.0.2.71", hostKey: SEEN });
});

/** As a replica of an earlier version writes it. */
const writeAsBefore = (id: string) =>
  site.db.transaction((tx) =>
    site.deps.secrets.put(tx, `ssh/${id}`, JSON.stringify({ username: "root", privateKey: KEY })),
  );

test("a key from before the upgrade works where the machine is, is bound there at the next start, and does not follow", async () => {
  const [kept, moved] = [await machineWithKey(), await machineWithKey()];
  await writeAsBefore(kept);
  await writeAsBefore(moved);
  expect(await target(kept)).toMatchObject(given);
  await move(moved, { sshEndpoint: `${moved}.elsewhere.example` });
  expect(await target(moved)).toMatchObject(refused);
  expect(await bindCredentials(site.db)).toBeGreaterThan(0);
  expect(await target(kept)).toMatchObject(given);
  await move(kept, { sshEndpoint: `${kept}.elsewhere.example` });
  expect(await target(kept)).toMatchObject(refused);
});
