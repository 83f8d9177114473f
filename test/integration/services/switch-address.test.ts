import { createClient } from "@connectrpc/connect";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { SwitchService } from "../../../contract/millwright/v1/switch_pb.js";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { createNvueFabric } from "../../../src/providers/nvue/nvue-fabric.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import {
  addExpectedSwitch,
  type ExpectedSwitchInput,
  updateExpectedSwitch,
} from "../../../src/services/expected-switch/expected-switches.ts";
import { listOsAddresses, setOsAddress } from "../../../src/services/expected-switch/os-address.ts";
import { acceptSwitchCertificate } from "../../../src/services/switch/certificate.ts";
import { bindCredentials } from "../../../src/store/device/bind-credentials.ts";
import { listExpectedSwitches } from "../../../src/store/expected-switch/expected-switches.ts";
import { MIGRATIONS_DIRECTORY, readMigrations } from "../../../src/store/postgres/migrate.ts";
import { listSwitches } from "../../../src/store/switch/switches.ts";
import { wireFabricTargets } from "../../../src/wiring/rack/fabric-targets.ts";
import { recordClaim } from "../../support/claims.ts";
import { listenAsAttacker } from "../../support/credentials/attackers-socket.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, type ForgeUnderTest, startForge } from "../api/forge-under-test.ts";

/** Where the password of a switch's operating system is sent, and which certificate must be shown there. */
let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge();
});
afterAll(() => it.close());

const tester = { name: "ann", roles: ["admin"], address: null } as const;
const MAC = "02:00:00:00:00:01";
const PRINTED = (digit: string) => Array(32).fill(`${digit}${digit}`).join(":");
const expected: ExpectedSwitchInput = {
  bmcMac: MAC,
  bmcUsername: "root",
  bmcPassword: "secret",
  serial: "SN1",
  bmcEndpoint: "192.0.2.1:443",
  rackId: undefined,
  metadata: { name: "one", description: "", labels: {} },
  nvosMacs: ["02:00:00:00:00:02"],
  nvosUsername: "admin",
  nvosPassword: "nvos-secret",
};
beforeEach(async () => {
  await it.db.query("truncate switches, expected_switches, secrets, work, journal, claims");
  await addExpectedSwitch(it.deps, tester, expected);
  await it.db.query(
    `insert into switches (id, name, bmc_mac, bmc_address, bmc_port, state, nvos_macs, facts)
     values ('sw-1', 'sw-1', $1, '192.0.2.1', 443, 'ready', '{02:00:00:00:00:02}', $2::jsonb)`,
    [MAC, JSON.stringify({ nvosAddress: "192.0.2.2", nvosCertificateFingerprint: PRINTED("A") })],
  );
  await it.db.query(`update expected_switches set facts = facts || '{"switchId": "sw-1", "explored": "linked"}'`);
});
const rowOf = async () => (await listExpectedSwitches(it.db, { bmcMac: MAC }))[0];
const deviceOf = async () => (await listSwitches(it.db, { ids: ["sw-1"] }))[0];
const refused = { code: "credentials_not_for_this_address", facts: { at: "switch_os", name: "sw-1" } };
const set = (osAddress: string, bmcMac = MAC) => setOsAddress(it.deps, tester, { bmcMac, osAddress });

test("the address is kept with the row and its switch, is told, and outlives an update of the row; the pin stays", async () => {
  await set("192.0.2.7:8443");
  expect([(await rowOf())?.nvosAddress, (await deviceOf())?.givenNvosAddress]).toEqual(Array(2).fill("192.0.2.7:8443"));
  expect((await deviceOf())?.facts.nvosCertificateFingerprint).toBe(PRINTED("A"));
  const told = [{ bmcMacAddress: MAC, osAddress: "192.0.2.7:8443" }];
  expect(await Promise.all(["", MAC.toUpperCase()].map((mac) => listOsAddresses(it.deps, mac)))).toEqual([told, told]);
  await updateExpectedSwitch(it.deps, tester, { ...expected, metadata: { ...expected.metadata, name: "two" } });
  expect((await rowOf())?.nvosAddress).toBe("192.0.2.7:8443");
  const [entry] = await it.db.query<{ actor: string; data: object }>(
    "select actor, data from journal where kind = 'switch' and type = 'place_changed'",
  );
  expect(entry).toMatchObject({ actor: "ann", data: { nvos_address: "192.0.2.7:8443" } });
  await set("");
  expect([(await rowOf())?.nvosAddress, (await deviceOf())?.givenNvosAddress]).toEqual([null, null]);
  expect(await listOsAddresses(it.deps, "")).toEqual([]);
});

test("the password goes where the BMC reports the system, or where its row says; what nobody says any more is forgotten at once", async () => {
  const targetOf = wireFabricTargets({ db: it.db, secrets: it.deps.secrets });
  const switches = createClient(SwitchService, it.api.grpc());
  const shown = async () => (await switches.getSwitch({ id: "sw-1" }, as("ann"))).switch?.os?.address;
  const unknown = { code: "endpoint_missing" };
  // As servers of before left it: what the label of a switch said, with nothing that tells so.
  await expect(targetOf("sw-1")).rejects.toMatchObject(unknown);
  expect(await shown()).toBe("");
  await set("192.0.2.7:8443");
  expect(await shown()).toBe("192.0.2.7:8443");
  await expect(targetOf("sw-1")).rejects.toMatchObject(refused);
  await updateExpectedSwitch(it.deps, tester, expected);
  expect(await targetOf("sw-1")).toMatchObject({ address: "192.0.2.7", port: 8443, password: "nvos-secret" });
  await set("192.0.2.8:8443");
  await expect(targetOf("sw-1")).rejects.toMatchObject(refused);
  await set("");
  await expect(targetOf("sw-1")).rejects.toMatchObject(unknown);
  expect(await shown()).toBe("");
  await updateExpectedSwitch(it.deps, tester, expected);
  await it.db.query(`update switches set facts = facts || '{"reportedNvosAddress": "192.0.2.3"}'`);
  expect(await targetOf("sw-1")).toMatchObject({ address: "192.0.2.3", port: 443 });
});

test("an operator who sets the address to a server of their own is sent no password of NVOS there", async () => {
  const attacker = await listenAsAttacker();
  const gateway = createBmcGateway();
  const fabric = createNvueFabric({ gateway, mayReach: () => true });
  onTestFinished(async () => {
    fabric.close();
    gateway.close();
    await attacker.close();
  });
  await it.db.query("update switches set facts = '{}'");
  const targetOf = wireFabricTargets({ db: it.db, secrets: it.deps.secrets });
  const read = async () => fabric.readStatus(await targetOf("sw-1"), aCall());
  await set(attacker.endpoint);
  await expect(read()).rejects.toMatchObject(refused);
  expect(attacker.connections()).toBe(0);
  // Given for this address, it is sent there: the attacker would have noted it.
  await updateExpectedSwitch(it.deps, tester, expected);
  await read().catch(() => undefined);
  expect(attacker.received()).toContain("nvos-secret");
});

test("a password of NVOS from before the upgrade is for the address on record, and does not follow another", async () => {
  const targetOf = wireFabricTargets({ db: it.db, secrets: it.deps.secrets });
  await set("192.0.2.7");
  const unbind = () => it.db.query("update secrets set bound_to = null, bound_nonce = null where name like 'nvos/%'");
  await unbind();
  expect(await targetOf("sw-1")).toMatchObject({ address: "192.0.2.7", password: "nvos-secret" });
  await bindCredentials(it.db);
  expect(await targetOf("sw-1")).toMatchObject({ address: "192.0.2.7", password: "nvos-secret" });
  await set("192.0.2.66");
  await expect(targetOf("sw-1")).rejects.toMatchObject(refused);
  await set("192.0.2.7");
  await unbind();
  await set("192.0.2.66");
  await bindCredentials(it.db);
  await expect(targetOf("sw-1")).rejects.toMatchObject(refused);
});

test("the migration forgets what a label said, and nothing that a row gives or a BMC reported", async () => {
  await it.db.query(
    `insert into switches (id, name, bmc_mac, bmc_address, bmc_port, state, labels, nvos_address, facts)
     select id, id, mac, '192.0.2.1', 443, 'ready', '{"nvos_address": "192.0.2.66"}', given, jsonb_build_object('serial', 'S', 'nvosAddress', fact)
       from (values ('sw-2', '02:00:00:00:00:12', null, '192.0.2.66'), ('sw-3', '02:00:00:00:00:13', '192.0.2.66', '192.0.2.66'),
                    ('sw-4', '02:00:00:00:00:14', null, '192.0.2.5')) as v(id, mac, given, fact)`,
  );
  const migration = (await readMigrations(MIGRATIONS_DIRECTORY)).find(({ id }) => id.startsWith("0054"));
  await it.db.query(migration?.sql ?? "");
  expect(await it.db.query("select id, facts from switches where id <> 'sw-1' order by id")).toEqual([
    { id: "sw-2", facts: { serial: "S" } },
    { id: "sw-3", facts: { serial: "S", nvosAddress: "192.0.2.66" } },
    { id: "sw-4", facts: { serial: "S", nvosAddress: "192.0.2.5" } },
  ]);
});

test.each(["http://192.0.2.7", "192.0.2.7/path", "a b", "user@host", "192.0.2.7:0", "[::1"])(
  "%s is no address, and changes nothing",
  async (wrong) => {
    await expect(set(wrong)).rejects.toMatchObject({ kind: "invalid_argument" });
    expect((await rowOf())?.nvosAddress).toBeNull();
  },
);

test("a switch that somebody works on keeps its address and the MAC addresses of its system", async () => {
  await recordClaim(it.db, { kind: "switch", id: "sw-1" }, { kind: "rack", id: "rack-1" }, "maintenance");
  const held = "switch sw-1 cannot be moved to another address: rack rack-1 (maintenance) works on it";
  await expect(set("192.0.2.7")).rejects.toThrow(held);
  const moved = { ...expected, nvosMacs: ["02:00:00:00:00:03"] };
  await expect(updateExpectedSwitch(it.deps, tester, moved)).rejects.toThrow(held);
  expect((await rowOf())?.nvosAddress).toBeNull();
  expect((await deviceOf())?.nvosMacs).toEqual(["02:00:00:00:00:02"]);
});

test("a row that is not there is named", async () => {
  await expect(set("192.0.2.7", "02:00:00:00:00:99")).rejects.toMatchObject({ kind: "not_found" });
});

test("the certificate of its system is replaced by hand; that of its BMC only by the one that the BMC shows", async () => {
  const accept = (digit: string, os: boolean) =>
    acceptSwitchCertificate(it.deps, tester, { id: "sw-1", fingerprint: PRINTED(digit), os });
  await accept("B", true);
  expect((await deviceOf())?.facts).toMatchObject({
    nvosCertificateFingerprint: PRINTED("B"),
    certificateFingerprint: null,
  });
  await expect(accept("C", false)).rejects.toThrow("was not seen to show another certificate");
  const cause = { code: "certificate_changed", facts: { shown: PRINTED("C"), expected: PRINTED("D") } };
  await it.db.query("update switches set outcome = $1::jsonb where id = 'sw-1'", [
    JSON.stringify({ type: "failing", reason: "another certificate", cause }),
  ]);
  await expect(accept("E", false)).rejects.toThrow(`the BMC shows ${PRINTED("C")}`);
  await accept("C", false);
  expect((await deviceOf())?.facts).toMatchObject({
    nvosCertificateFingerprint: PRINTED("B"),
    certificateFingerprint: PRINTED("C"),
  });
});
