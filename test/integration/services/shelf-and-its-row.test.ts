import { expect, test } from "vitest";
import {
  deleteExpectedPowerShelf,
  updateExpectedPowerShelf,
} from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import {
  createPowerShelf,
  forceDeletePowerShelf,
  refreshPowerShelf,
} from "../../../src/services/power-shelf/power-shelves.ts";
import { listExpectedPowerShelves } from "../../../src/store/expected-power-shelf/expected-power-shelves.ts";
import type { PowerShelfRecord } from "../../../src/store/power-shelf/power-shelves.ts";
import { type Datacentre, startDatacentre, tester } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let dc: Datacentre;
beforeAll(async () => {
  dc = await startDatacentre({ site: "racks=1" });
  await dc.expectAll();
  await dc.until(async () => (await dc.shelves()).filter(({ state }) => state.name === "ready").length === 8);
});
afterAll(() => dc.close());

const shelfNamed = async (name: string): Promise<PowerShelfRecord> => {
  const shelf = (await dc.shelves()).find((one) => one.name === name);
  if (!shelf) throw new Error(`there is no ${name}`);
  return shelf;
};

const rowOf = async ({ bmc }: PowerShelfRecord) => {
  const [row] = await listExpectedPowerShelves(dc.db, { bmcMac: bmc.mac });
  if (!row) throw new Error(`there is no row for ${bmc.mac}`);
  return row;
};

test("a row that says the BMC is elsewhere now has the shelf looked for there", async () => {
  const shelf = await shelfNamed("rack-1-shelf-1");
  const row = await rowOf(shelf);
  const moveTo = (bmcEndpoint: string, rackId: string) =>
    updateExpectedPowerShelf(dc.deps, tester, {
      bmcMac: row.bmc.mac,
      bmcUsername: row.bmcUsername,
      bmcPassword: undefined,
      serial: row.serial,
      bmcEndpoint,
      rackId,
      metadata: { name: row.name, description: row.description, labels: row.labels },
    });

  await moveTo(`127.64.1.2:${shelf.bmc.port}`, "rack-7"); // where another shelf is, with another password
  await dc.until(async () => (await shelfNamed("rack-1-shelf-1")).outcome?.reason.includes("127.64.1.2") ?? false);
  expect((await shelfNamed("rack-1-shelf-1")).rackId).toBe("rack-7");

  await moveTo(`${shelf.bmc.address}:${shelf.bmc.port}`, "rack-1");
  await dc.until(async () => (await shelfNamed("rack-1-shelf-1")).outcome === null);
});

test("a pinned certificate is forgotten when an operator says so, and the next one seen is pinned", async () => {
  const { id, facts } = await shelfNamed("rack-1-shelf-3");
  const another = "00:11:22";
  await dc.db.execute(
    "update power_shelves set facts = facts || jsonb_build_object('certificateFingerprint', $2::text) where id = $1",
    [id, another],
  );
  await dc.until(async () => (await shelfNamed("rack-1-shelf-3")).outcome?.reason.includes(another) ?? false);

  await refreshPowerShelf(dc.deps, tester, { id, forgetCertificate: true });
  await dc.until(async () => (await shelfNamed("rack-1-shelf-3")).outcome === null);
  expect((await shelfNamed("rack-1-shelf-3")).facts.certificateFingerprint).toBe(facts.certificateFingerprint);
});

test("a row is not linked to a shelf that is on record with another serial number", async () => {
  const shelf = await shelfNamed("rack-1-shelf-4");
  const row = await rowOf(shelf);
  await dc.db.execute('update power_shelves set facts = facts || \'{"serial": "OTHER"}\' where id = $1', [shelf.id]);
  await dc.db.execute("update expected_power_shelves set state = 'exploring' where id = $1", [row.id]);
  await dc.db.execute("update work set wake_at = now() where kind = 'expected_power_shelf' and id = $1", [row.id]);
  await dc.until(async () => (await rowOf(shelf)).facts.explored === "duplicate");
  expect((await rowOf(shelf)).outcome?.reason).toContain("delete that power shelf first");
});

test("the explorer sends the password to no other certificate than the first, until the row is updated with its password", async () => {
  const shelf = await shelfNamed("rack-1-shelf-6");
  const row = await rowOf(shelf);
  expect(row.facts.certificateFingerprint).toBe(shelf.facts.certificateFingerprint);
  await forceDeletePowerShelf(dc.deps, tester, shelf.id);
  await dc.db.execute("update expected_power_shelves set state = 'exploring', facts = facts || $2 where id = $1", [
    row.id,
    { certificateFingerprint: "00:11:22" },
  ]);
  await dc.db.execute("update work set wake_at = now() where kind = 'expected_power_shelf' and id = $1", [row.id]);
  await dc.until(async () => (await rowOf(shelf)).outcome?.reason.includes("00:11:22") ?? false);
  expect((await rowOf(shelf)).facts.explored).toBe("failed");

  const inventory = await dc.control<{ bmc_mac_address: string; bmc_password: string }[]>("GET", "/inventory");
  const bmcPassword = inventory.find(({ bmc_mac_address }) => bmc_mac_address === row.bmc.mac)?.bmc_password;
  const update = (password: string | undefined) =>
    updateExpectedPowerShelf(dc.deps, tester, {
      bmcMac: row.bmc.mac,
      bmcUsername: row.bmcUsername,
      bmcPassword: password,
      serial: row.serial,
      bmcEndpoint: `${row.bmc.address}:${row.bmc.port}`,
      rackId: row.rackId ?? undefined,
      metadata: { name: row.name, description: row.description, labels: row.labels },
    });
  // Without the password an update forgets nothing.
  await update(undefined);
  await dc.until(async () => (await rowOf(shelf)).facts.explored === "failed");
  expect((await rowOf(shelf)).outcome?.reason).toContain("00:11:22");
  await update(bmcPassword);
  await dc.until(async () => (await rowOf(shelf)).state.name === "linked");
  expect((await rowOf(shelf)).facts.certificateFingerprint).toBe(shelf.facts.certificateFingerprint);
});

test("credentials go with the last that needs them", async () => {
  const secretsOf = async (mac: string) => dc.db.query("select name from secrets where name = $1", [`bmc/${mac}`]);
  const bmcMac = "02:00:00:00:99:01";
  const made = await createPowerShelf(dc.deps, tester, {
    id: "made-by-hand",
    name: "",
    rackId: undefined,
    bmcEndpoint: "127.64.9.9:1",
    bmcMac,
    bmcUsername: "root",
    bmcPassword: "pw",
    bmcScheme: "",
    trust: "pin",
    requestId: undefined,
  });
  expect(await secretsOf(bmcMac)).toHaveLength(1);
  await forceDeletePowerShelf(dc.deps, tester, made.id);
  expect(await secretsOf(bmcMac)).toHaveLength(0);

  const expected = await shelfNamed("rack-1-shelf-5");
  await forceDeletePowerShelf(dc.deps, tester, expected.id);
  expect(await secretsOf(expected.bmc.mac)).toHaveLength(1);
});

test.each(["switches", "expected_switches"])("credentials stay while a row of %s has the BMC", async (table) => {
  const expected = await shelfNamed(table === "switches" ? "rack-1-shelf-7" : "rack-1-shelf-8");
  const { mac } = expected.bmc;
  const named = {
    switches: "name, bmc_address, bmc_port",
    expected_switches: "name, bmc_username, switch_serial_number",
  };
  const values = { switches: "'sw-1', '127.64.9.9', 443", expected_switches: "'sw-1', 'root', 'SN-1'" };
  const at = table as keyof typeof named;
  await dc.db.execute(
    `insert into ${table} (id, bmc_mac, ${named[at]}, state) values ('sw-1', $1, ${values[at]}, 'ready')`,
    [mac],
  );
  await dc.db.execute("insert into secrets select $1, key_id, nonce, ciphertext from secrets where name = $2", [
    `nvos/${mac}`,
    `bmc/${mac}`,
  ]);
  await deleteExpectedPowerShelf(dc.deps, tester, { bmcMac: mac });
  await forceDeletePowerShelf(dc.deps, tester, expected.id);
  const kept = await dc.db.query<{ name: string }>("select name from secrets where name in ($1, $2) order by name", [
    `bmc/${mac}`,
    `nvos/${mac}`,
  ]);
  expect(kept.map(({ name }) => name)).toEqual([`bmc/${mac}`, `nvos/${mac}`]);
});
