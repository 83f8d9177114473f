import { expect, onTestFinished, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { bindCredentials } from "../../../src/store/device/bind-credentials.ts";
import { machineStore } from "../../../src/store/machine/machines.ts";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { wireStepTargets } from "../../../src/wiring/step-targets.ts";
import { listenAsAttacker } from "../../support/credentials/attackers-socket.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

/** A credential is delivered to the address that it was given for, and to no other, whoever moves the machine. */

const SECRET = "canary-bound-31c7";
/** Each machine has an address of its own: no two may have the same. */
const homeOf = (id: string) => ({ bmcEndpoint: `${id}.example`, bmcTlsTrust: "pin", bmcProtocol: "" });
type Spec = Partial<ReturnType<typeof homeOf>> & { readonly provider?: string };
const PIN = "AA:".repeat(31) + "AA";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
});
afterAll(() => site.close());

let count = 0;
function anId(): string {
  count += 1;
  return `m-bound-${count}`;
}
const register = (machineId: string, spec: Spec = {}) =>
  site.machines.registerMachine({ machine: { machineId, spec: { ...homeOf(machineId), ...spec } } });
const move = (machineId: string, spec: Spec) =>
  site.machines.updateMachine({ machine: { machineId, spec: { ...homeOf(machineId), ...spec } } }, as("pat"));
const give = (machineId: string) =>
  site.lifecycle.setMachineCredentials({ machineId, bmcUsername: "root", bmcPassword: SECRET }, as("kim"));
const load = async (id: string) => {
  const [machine] = (await machineStore.load(site.db, [id])).things;
  if (!machine) throw new Error(`there is no ${id}`);
  return machine;
};
const targetsOf = (): ReturnType<typeof wireStepTargets> =>
  wireStepTargets({ db: site.db, secrets: site.deps.secrets, runbooks: loadRunbooks() });
/** As every provider gets it: the target with the credentials in it, or why there is none. */
const target = async (id: string) =>
  targetsOf()(await load(id))
    .bmc()
    .catch((error: unknown) => error as StepFailure);
const refused = { code: "credentials_not_for_this_address", facts: { at: "bmc" } };
const given = { username: "root", password: SECRET };

async function machineWithCredentials(): Promise<string> {
  const id = anId();
  await register(id);
  await give(id);
  return id;
}

test("a machine that its operator moves to another address sends nothing there", async () => {
  const attacker = await listenAsAttacker();
  const gateway = createBmcGateway();
  const provider = createRedfishMachineProvider({ gateway, mayReach: () => true });
  onTestFinished(async () => {
    await provider.close();
    gateway.close();
    await attacker.close();
  });
  const read = async (id: string) => {
    const bmc = await targetsOf()(await load(id)).bmc();
    return provider.can.vitals?.readVitals(bmc, aCall());
  };
  const id = await machineWithCredentials();
  await move(id, { bmcEndpoint: attacker.endpoint, bmcTlsTrust: "pin" });
  await expect(read(id)).rejects.toMatchObject(refused);
  expect(attacker.connections()).toBe(0);
  // Given for this address, they are sent to it: the attacker would have noted them.
  await give(id);
  await read(id).catch(() => undefined);
  expect(attacker.received()).toContain(SECRET);
});

test.each<[string, (id: string) => Spec]>([
  ["host", (id) => ({ bmcEndpoint: `${id}.elsewhere.example` })],
  ["port", (id) => ({ bmcEndpoint: `${id}.example:8443` })],
  ["scheme", (id) => ({ bmcEndpoint: `http://${id}.example:443` })],
  ["trust", () => ({ bmcTlsTrust: "ca" })],
  ["protocol", (id) => ({ bmcEndpoint: `${id}.example:443`, bmcProtocol: "ipmi" })],
  ["provider's protocol", (id) => ({ bmcEndpoint: `${id}.example:443`, provider: "ipmi" })],
])("credentials are not for another %s, until they are set again", async (_, change) => {
  const id = await machineWithCredentials();
  expect(await target(id)).toMatchObject(given);
  await move(id, change(id));
  expect(await target(id)).toMatchObject(refused);
  await give(id);
  expect(await target(id)).toMatchObject(given);
});

test("the failure says for which place they are, and which command gives them for this one", async () => {
  const id = await machineWithCredentials();
  await move(id, { bmcEndpoint: `${id}.example:444`, bmcTlsTrust: "ca" });
  const failure = await target(id);
  expect(failure).toBeInstanceOf(StepFailure);
  expect(failure).toMatchObject({
    facts: { at: "bmc", expected: `https://${id}.example:443 pin`, shown: `https://${id}.example:444 ca` },
  });
  expect(JSON.stringify(failure)).not.toContain(SECRET);
});

test("a label, a MAC address or the system behind the same address changes nothing", async () => {
  const id = await machineWithCredentials();
  await move(id, { bmcEndpoint: `https://${id}.example:443/redfish/v1/Systems/2` });
  expect(await target(id)).toMatchObject({ ...given, path: "/redfish/v1/Systems/2" });
});

test("a machine that comes back to its address is trusted by the certificate that was pinned there", async () => {
  const id = await machineWithCredentials();
  const pinned = { trust: { mode: "pin", fingerprint256: PIN } };
  await site.db.execute(
    "update machines set facts = facts || jsonb_build_object('certificateFingerprint', $2::text) where id = $1",
    [id, PIN],
  );
  expect(await target(id)).toMatchObject(pinned);
  await move(id, { bmcEndpoint: `${id}.elsewhere.example` });
  expect((await load(id)).facts.certificateFingerprint).toBeNull();
  await move(id, {});
  expect(await target(id)).toMatchObject({ ...given, ...pinned });
  // Also for who gives them again meanwhile.
  await give(id);
  expect(await target(id)).toMatchObject(pinned);
});

test("who has read the machine before it was moved gets none of the credentials of its new address", async () => {
  const id = await machineWithCredentials();
  const before = await load(id);
  await move(id, { bmcEndpoint: `${id}.elsewhere.example` });
  await give(id);
  await expect(targetsOf()(before).bmc()).rejects.toMatchObject(refused);
  expect(await target(id)).toMatchObject(given);
});

/** What a replica of an earlier version writes: it knows nothing of places. */
const writeAsBefore = (id: string) =>
  site.db.transaction(async (tx) => {
    await site.deps.secrets.put(tx, `bmc/${id}`, JSON.stringify(given));
  });

test("credentials from before the upgrade keep working, and are bound to their address at the next start", async () => {
  const id = anId();
  await register(id);
  await writeAsBefore(id);
  expect(await target(id)).toMatchObject(given);
  expect(await bindCredentials(site.db)).toBeGreaterThan(0);
  expect(await bindCredentials(site.db)).toBe(0);
  expect(await target(id)).toMatchObject(given);
  await move(id, { bmcEndpoint: `${id}.elsewhere.example` });
  expect(await target(id)).toMatchObject(refused);
});

test("credentials that are bound to nothing yet do not follow a machine that is moved", async () => {
  const id = anId();
  await register(id);
  await writeAsBefore(id);
  await move(id, { bmcEndpoint: `${id}.elsewhere.example` });
  expect(await target(id)).toMatchObject(refused);
  await bindCredentials(site.db);
  expect(await target(id)).toMatchObject(refused);
});

test("credentials that an earlier version sets again are for the address of that moment", async () => {
  const id = await machineWithCredentials();
  await move(id, { bmcEndpoint: `${id}.elsewhere.example` });
  await writeAsBefore(id);
  expect(await target(id)).toMatchObject(given);
  await move(id, {});
  expect(await target(id)).toMatchObject(refused);
});

test("credentials that were given before any address are for none that an operator sets", async () => {
  const id = anId();
  await register(id, { bmcEndpoint: "" });
  await give(id);
  await move(id, {});
  expect(await target(id)).toMatchObject(refused);
});
