import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { createRedfishShelfProvider } from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { ExpectedInput } from "../../../src/services/expected-device/input.ts";
import {
  addExpectedPowerShelf,
  updateExpectedPowerShelf,
} from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { setPowerShelfCredentials } from "../../../src/services/power-shelf/credentials.ts";
import { createPowerShelf, refreshPowerShelf } from "../../../src/services/power-shelf/power-shelves.ts";
import { noCredentials } from "../../../src/store/access/no-credentials.ts";
import { bindCredentials } from "../../../src/store/device/bind-credentials.ts";
import { signInToBmcs } from "../../../src/store/device/bmc-credentials.ts";
import { listExpectedPowerShelves } from "../../../src/store/expected-power-shelf/expected-power-shelves.ts";
import { listPowerShelves } from "../../../src/store/power-shelf/power-shelves.ts";
import { deviceTarget, explorerTarget } from "../../../src/wiring/things/device-target.ts";
import { listenAsAttacker } from "../../support/credentials/attackers-socket.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ForgeUnderTest, startForge } from "../api/forge-under-test.ts";

/** Shelves and expected rows share the credentials of a BMC by its MAC address: each connection is judged by its own address. */

const MAC = "02:00:00:00:00:31";
const PIN = `${"AB:".repeat(31)}AB`;
const tester = { name: "tester", roles: ["admin"], address: null };
const operator = { name: "pat", roles: ["operator"], address: null };

let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge();
});
afterAll(() => it.close());
beforeEach(async () => {
  for (const table of ["power_shelves", "expected_power_shelves", "secrets"])
    await it.db.execute(`delete from ${table}`);
});

const expected = (change: Partial<ExpectedInput> = {}): ExpectedInput => ({
  ...{ bmcMac: MAC, bmcUsername: "root", bmcPassword: "first", serial: "S-1" },
  ...{ bmcEndpoint: "192.0.2.7", rackId: undefined, metadata: { name: "", description: "", labels: {} } },
  ...change,
});
const add = (change: Partial<ExpectedInput> = {}) => addExpectedPowerShelf(it.deps, tester, expected(change));
const update = (change: Partial<ExpectedInput>) =>
  updateExpectedPowerShelf(it.deps, operator, expected({ bmcPassword: undefined, ...change }));
const makeByHand = () =>
  createPowerShelf(it.deps, tester, {
    ...{ id: "by-hand", name: "", rackId: undefined, bmcEndpoint: "192.0.2.7", bmcMac: MAC, bmcUsername: "root" },
    ...{ bmcPassword: "first", bmcScheme: "", trust: "pin", requestId: undefined },
  });

async function signIn(target: Parameters<typeof signInToBmcs>[2][number]["target"]) {
  const [found] = await signInToBmcs(it.db, it.deps.secrets, [{ mac: MAC, target }]);
  if (found === undefined) throw new Error("one question has one answer");
  return "password" in found ? found : noCredentials(found, { at: "bmc" });
}
const bySearch = async () => {
  const [row] = await listExpectedPowerShelves(it.db, { bmcMac: MAC });
  if (!row) throw new Error("there is no row");
  return signIn(explorerTarget(row));
};
const byShelf = async () => {
  const [shelf] = await listPowerShelves(it.db, { ids: ["by-hand"] });
  if (!shelf) throw new Error("there is no shelf");
  return signIn(deviceTarget(shelf));
};
const refused: Partial<StepFailure> = { code: "credentials_not_for_this_address" };

describe("the search for an expected shelf", () => {
  test("sends no password to an address that came without one", async () => {
    await add();
    expect(await bySearch()).toMatchObject({ address: "192.0.2.7", password: "first" });
    await update({ bmcEndpoint: "192.0.2.66" });
    expect(await bySearch()).toMatchObject(refused);
    await update({ bmcEndpoint: "192.0.2.7:8443" });
    expect(await bySearch()).toMatchObject(refused);
  });

  test("takes an address and a password of one message as given together", async () => {
    await add();
    await update({ bmcEndpoint: "192.0.2.66", bmcPassword: "second" });
    expect(await bySearch()).toMatchObject({ address: "192.0.2.66", password: "second" });
  });

  test("sends a password that was given without any address nowhere", async () => {
    await add({ bmcEndpoint: undefined });
    await update({ bmcEndpoint: "192.0.2.66" });
    expect(await bySearch()).toMatchObject(refused);
  });

  test("keeps the pin when its row is updated, unless address and password are given with it", async () => {
    await add();
    const see = () =>
      it.db.execute(
        "update expected_power_shelves set facts = facts || jsonb_build_object('certificateFingerprint', $1::text)",
        [PIN],
      );
    await see();
    const pinned = { trust: { mode: "pin", fingerprint256: PIN } };
    await update({ metadata: { name: "other", description: "", labels: {} } });
    expect(await bySearch()).toMatchObject(pinned);
    await see();
    await update({ bmcPassword: "first" });
    expect(await bySearch()).toMatchObject({ trust: { mode: "pin" } });
    expect(await bySearch()).not.toMatchObject(pinned);
  });
});

describe("a shelf on record", () => {
  test("whose row an operator points at a server of their own sends no password there", async () => {
    const attacker = await listenAsAttacker();
    const gateway = createBmcGateway();
    const provider = createRedfishShelfProvider({ gateway, mayReach: () => true, clock: systemClock });
    onTestFinished(async () => {
      await provider.close();
      gateway.close();
      await attacker.close();
    });
    const read = async (found: Awaited<ReturnType<typeof byShelf>>) => {
      if (found instanceof StepFailure) throw found;
      return provider.can.power.readPower(found, aCall());
    };
    await makeByHand();
    await add({ bmcEndpoint: "192.0.2.7" });
    await update({ bmcEndpoint: attacker.endpoint });
    await expect(byShelf().then(read)).rejects.toMatchObject(refused);
    await expect(bySearch().then(read)).rejects.toMatchObject(refused);
    expect(attacker.connections()).toBe(0);
    // Given for this address, it is sent there: the attacker would have noted it.
    await update({ bmcEndpoint: attacker.endpoint, bmcPassword: "canary-shelf-52e0" });
    await byShelf()
      .then(read)
      .catch(() => undefined);
    expect(attacker.received()).toContain("canary-shelf-52e0");
  });

  test("sends no password to the address that its row gets without one", async () => {
    await makeByHand();
    await add({ bmcEndpoint: "192.0.2.7" });
    expect(await byShelf()).toMatchObject({ password: "first" });
    await update({ bmcEndpoint: "192.0.2.66" });
    expect(await byShelf()).toMatchObject(refused);
    await setPowerShelfCredentials(it.deps, tester, { id: "by-hand", bmcUsername: "root", bmcPassword: "again" });
    expect(await byShelf()).toMatchObject({ address: "192.0.2.66", password: "again" });
  });

  test("is not sent the password that was given for the other address of a new row", async () => {
    await makeByHand();
    await add({ bmcEndpoint: "192.0.2.66", bmcPassword: "for-66" });
    expect(await byShelf()).toMatchObject(refused);
    expect(await bySearch()).toMatchObject({ password: "for-66" });
  });

  test("forgets its pin by the one call that says so", async () => {
    await makeByHand();
    const facts = "update power_shelves set facts = facts || jsonb_build_object('certificateFingerprint', $1::text)";
    await it.db.execute(facts, [PIN]);
    await refreshPowerShelf(it.deps, tester, { id: "by-hand", forgetCertificate: true });
    expect(await byShelf()).toMatchObject({ trust: { mode: "pin" } });
    expect(await byShelf()).not.toMatchObject({ trust: { fingerprint256: PIN } });
  });
});

test("passwords from before the upgrade are bound to the devices that have them, and to the rows where there is no device", async () => {
  await makeByHand();
  await add({ bmcEndpoint: "192.0.2.8" });
  await it.db.execute("update secrets set bound_to = null, bound_nonce = null");
  await bindCredentials(it.db);
  expect(await byShelf()).toMatchObject({ password: "first" });
  expect(await bySearch()).toMatchObject(refused);
  await it.db.execute("delete from power_shelves");
  await it.db.execute("update secrets set bound_to = null, bound_nonce = null");
  await bindCredentials(it.db);
  expect(await bySearch()).toMatchObject({ password: "first" });
});
