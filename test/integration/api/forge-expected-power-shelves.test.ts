import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import type { ExpectedPowerShelfSchema } from "../../../contract/forge/forge_pb.js";
import { ExploreState } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { storedBmcCredentials } from "../../support/credentials/stored-credentials.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, type ForgeUnderTest, type Parts, refusal, startForge } from "./forge-under-test.ts";

type Expected = Parts<typeof ExpectedPowerShelfSchema>;

let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge();
});
afterAll(() => it.close());
beforeEach(() => it.forge.deleteAllExpectedPowerShelves({}));

const MAC = "02:00:00:00:00:01";
const UUID = "0f0e0d0c-0b0a-4908-8706-050403020100";
const row = (parts: Expected = {}): Expected => ({
  bmcMacAddress: MAC,
  bmcUsername: "root",
  bmcPassword: "first-password",
  shelfSerialNumber: "LT0001",
  bmcIpAddress: "192.0.2.7:8443",
  metadata: { name: "a1-top", description: "the top one", labels: [{ key: "zone", value: "a" }] },
  rackId: { id: "a1" },
  ...parts,
});
const macs = async () =>
  (await it.forge.getAllExpectedPowerShelves({})).expectedPowerShelves.map(({ bmcMacAddress }) => bmcMacAddress);
const password = async (mac = MAC) => {
  return (await storedBmcCredentials(it.db, it.deps.secrets, mac))?.password;
};
const link = (mac: string, powerShelfId: string) =>
  it.db.execute(
    "update expected_power_shelves set state = 'linked', facts = jsonb_build_object('explored', 'linked', 'powerShelfId', $2::text) where bmc_mac = $1",
    [mac, powerShelfId],
  );

describe("adding", () => {
  test("puts the row on record, to be read by MAC address in any notation or by id, without its password", async () => {
    await it.forge.addExpectedPowerShelf(row({ expectedPowerShelfId: { value: UUID.toUpperCase() } }), as("ann"));
    const byMac = await it.forge.getExpectedPowerShelf({ bmcMacAddress: "0200.0000.0001" });
    expect(byMac).toMatchObject({ ...row({ bmcPassword: "" }), expectedPowerShelfId: { value: UUID } });
    expect(byMac.bmcRetainCredentials).toBe(false);
    const byId = await it.forge.getExpectedPowerShelf({
      bmcMacAddress: "not even a MAC address",
      expectedPowerShelfId: { value: UUID },
    });
    expect(byId).toEqual(byMac);
    expect((await it.forge.getAllExpectedPowerShelves({})).expectedPowerShelves).toEqual([byMac]);
    expect(await password()).toBe("first-password");
    const { events } = await it.history.listHistory({ kind: "expected_power_shelf", id: UUID });
    expect(events[0]).toMatchObject({ type: "created", actor: "ann", toState: "exploring" });
  });

  test("gives an id where none is given, and takes a row without metadata, address and rack", async () => {
    await it.forge.addExpectedPowerShelf({
      bmcMacAddress: MAC,
      bmcUsername: "root",
      bmcPassword: "p",
      shelfSerialNumber: "S",
    });
    const found = await it.forge.getExpectedPowerShelf({ bmcMacAddress: MAC });
    expect(found.expectedPowerShelfId?.value).toMatch(/^[0-9a-f-]{36}$/);
    expect(found).toMatchObject({ bmcIpAddress: "", metadata: { name: "", labels: [] } });
    expect(found.rackId).toBeUndefined();
  });

  test.each([
    ["the MAC address", row({ bmcMacAddress: "02-00-00-00-00-01" })],
    ["the id", row({ bmcMacAddress: "02:00:00:00:00:02", expectedPowerShelfId: { value: UUID } })],
  ])("is refused when %s is taken", async (_what, second) => {
    await it.forge.addExpectedPowerShelf(row({ expectedPowerShelfId: { value: UUID } }));
    const before = await dumpTables(it.db);
    expect((await refusal(it.forge.addExpectedPowerShelf(second))).code).toBe(Code.AlreadyExists);
    expect(await dumpTables(it.db)).toEqual(before);
  });

  test.each([
    ["a MAC address that is none", { bmcMacAddress: "02:00" }, "bmc_mac_address"],
    ["no user name", { bmcUsername: "" }, "bmc_username"],
    ["no password", { bmcPassword: "" }, "bmc_password"],
    ["no serial", { shelfSerialNumber: "" }, "shelf_serial_number"],
    ["a serial that is too long", { shelfSerialNumber: "s".repeat(257) }, "shelf_serial_number"],
    ["an address that is none", { bmcIpAddress: "no address at all" }, "bmc_ip_address"],
    ["a port that is none", { bmcIpAddress: "192.0.2.7:99999" }, "bmc_ip_address"],
    ["an id that is no UUID", { expectedPowerShelfId: { value: "7" } }, "expected_power_shelf_id"],
    ["a rack id that is too long", { rackId: { id: "r".repeat(65) } }, "rack_id"],
    ["a name of one character", { metadata: { name: "x" } }, "metadata.name"],
    ["a label key twice", { metadata: { labels: [{ key: "k" }, { key: "k" }] } }, "metadata.labels"],
    ["a password with a NUL", { bmcPassword: "a\0b" }, "bmc_password"],
  ])("refuses %s, and changes nothing", async (_what, parts, field) => {
    const before = await dumpTables(it.db);
    const refused = await refusal(it.forge.addExpectedPowerShelf(row(parts)));
    expect(refused).toMatchObject({ code: Code.InvalidArgument, field });
    expect(refused.message).not.toContain("first-password");
    expect(await dumpTables(it.db)).toEqual(before);
  });
});

describe("updating", () => {
  test("replaces the row, found by MAC address or id", async () => {
    await it.forge.addExpectedPowerShelf(row({ expectedPowerShelfId: { value: UUID } }));
    await it.forge.updateExpectedPowerShelf(row({ shelfSerialNumber: "LT0002", bmcPassword: "second-password" }));
    expect((await it.forge.getExpectedPowerShelf({ bmcMacAddress: MAC })).shelfSerialNumber).toBe("LT0002");
    expect(await password()).toBe("second-password");
    const update = row({
      expectedPowerShelfId: { value: UUID },
      metadata: { name: "renamed" },
      bmcRetainCredentials: true,
    });
    await it.forge.updateExpectedPowerShelf(update, as("ann"));
    const found = await it.forge.getExpectedPowerShelf({ bmcMacAddress: MAC });
    expect(found).toMatchObject({ metadata: { name: "renamed" }, bmcRetainCredentials: true });
    const { events } = await it.history.listHistory({ kind: "expected_power_shelf", id: UUID, types: ["updated"] });
    expect(events.map(({ actor }) => actor)).toEqual(["admin-cli", "ann"]);
  });

  test("without a password keeps the one on record, but not for another user", async () => {
    await it.forge.addExpectedPowerShelf(row());
    await it.forge.updateExpectedPowerShelf(row({ bmcPassword: "", shelfSerialNumber: "LT0003" }));
    expect(await password()).toBe("first-password");
    expect(
      await refusal(it.forge.updateExpectedPowerShelf(row({ bmcPassword: "", bmcUsername: "admin" }))),
    ).toMatchObject({ code: Code.InvalidArgument, field: "bmc_password" });
  });

  test("does not find an unknown row, and never changes a MAC address", async () => {
    expect((await refusal(it.forge.updateExpectedPowerShelf(row()))).code).toBe(Code.NotFound);
    await it.forge.addExpectedPowerShelf(row({ expectedPowerShelfId: { value: UUID } }));
    const moved = row({ expectedPowerShelfId: { value: UUID }, bmcMacAddress: "02:00:00:00:00:09" });
    expect(await refusal(it.forge.updateExpectedPowerShelf(moved))).toMatchObject({
      code: Code.InvalidArgument,
      field: "bmc_mac_address",
    });
  });
});

describe("deleting", () => {
  test("removes the row and, when no shelf needs them, its credentials", async () => {
    await it.forge.addExpectedPowerShelf(row());
    await it.forge.deleteExpectedPowerShelf({ bmcMacAddress: MAC }, as("ann"));
    expect(await macs()).toEqual([]);
    expect(await password()).toBeUndefined();
    expect((await refusal(it.forge.deleteExpectedPowerShelf({ bmcMacAddress: MAC }))).code).toBe(Code.NotFound);
    expect((await refusal(it.forge.getExpectedPowerShelf({ bmcMacAddress: MAC }))).code).toBe(Code.NotFound);
  });

  test("keeps the power shelf that was made from it, and the credentials that the shelf needs", async () => {
    const id = await it.addShelf("made-from-it");
    const { powerShelf } = await it.shelves.getPowerShelf({ id });
    const mac = powerShelf?.bmc?.mac ?? "";
    await it.forge.addExpectedPowerShelf(row({ bmcMacAddress: mac }));
    await link(mac, id);
    await it.forge.deleteAllExpectedPowerShelves({});
    expect((await it.forge.findPowerShelves({ powerShelfId: { id } })).powerShelves).toHaveLength(1);
    expect(await password(mac)).toBe("first-password");
  });

  test("by neither a MAC address nor an id is refused, and so is an id that is no UUID", async () => {
    for (const call of ["deleteExpectedPowerShelf", "getExpectedPowerShelf"] as const) {
      expect(await refusal(it.forge[call]({}))).toMatchObject({ code: Code.InvalidArgument, field: "bmc_mac_address" });
      expect(await refusal(it.forge[call]({ expectedPowerShelfId: { value: "7" } }))).toMatchObject({
        code: Code.InvalidArgument,
        field: "expected_power_shelf_id",
      });
    }
  });
});

describe("replacing all", () => {
  const numbered = (last: number, parts: Expected = {}) => row({ bmcMacAddress: `02:00:00:00:00:0${last}`, ...parts });

  test("makes the inventory exactly the list; a row that stays keeps its id, its link and, when none is given, its password", async () => {
    await it.forge.addExpectedPowerShelf(numbered(1));
    await it.forge.addExpectedPowerShelf(numbered(2));
    const before = await it.forge.getExpectedPowerShelf({ bmcMacAddress: MAC });
    await link(MAC, "some-shelf");
    const answer = (await it.forge.getAllExpectedPowerShelves({})).expectedPowerShelves;
    expect(answer).toHaveLength(2);
    await it.forge.replaceAllExpectedPowerShelves(
      { expectedPowerShelves: [numbered(3), numbered(1, { bmcPassword: "" })] },
      as("ann"),
    );
    expect(await macs()).toEqual(["02:00:00:00:00:01", "02:00:00:00:00:03"]);
    expect(await it.forge.getExpectedPowerShelf({ bmcMacAddress: MAC })).toEqual(before);
    expect(await password()).toBe("first-password");
    expect(await password("02:00:00:00:00:02")).toBeUndefined();
    const { expectedPowerShelves } = await it.forge.getAllExpectedPowerShelvesLinked({});
    expect(expectedPowerShelves).toMatchObject([
      {
        bmcMacAddress: MAC,
        shelfSerialNumber: "LT0001",
        powerShelfId: { id: "some-shelf" },
        exploredEndpointAddress: "192.0.2.7:8443",
        rackId: { id: "a1" },
        expectedPowerShelfId: before.expectedPowerShelfId ?? {},
      },
      { bmcMacAddress: "02:00:00:00:00:03" },
    ]);
    expect(expectedPowerShelves[1]?.powerShelfId).toBeUndefined();
    expect(expectedPowerShelves[1]?.exploredEndpointAddress).toBeUndefined();
  });

  test("an answer of ours can be handed in again as it is", async () => {
    await it.forge.addExpectedPowerShelf(numbered(1));
    const { expectedPowerShelves } = await it.forge.getAllExpectedPowerShelves({});
    await it.forge.replaceAllExpectedPowerShelves({ expectedPowerShelves });
    expect((await it.forge.getAllExpectedPowerShelves({})).expectedPowerShelves).toEqual(expectedPowerShelves);
    expect(await password()).toBe("first-password");
  });

  test.each([
    ["a broken row", [numbered(1), numbered(2, { bmcUsername: "" })], "expected_power_shelves[1].bmc_username"],
    ["a broken name", [numbered(1, { metadata: { name: "x" } })], "expected_power_shelves[0].metadata.name"],
    ["a MAC address twice", [numbered(1), numbered(1)], "expected_power_shelves"],
    ["a new row without a password", [numbered(5, { bmcPassword: "" })], "expected_power_shelves[0].bmc_password"],
  ])("changes nothing when the list has %s, and says where", async (_what, expectedPowerShelves, field) => {
    await it.forge.addExpectedPowerShelf(numbered(7));
    const before = await dumpTables(it.db);
    expect(await refusal(it.forge.replaceAllExpectedPowerShelves({ expectedPowerShelves }))).toMatchObject({
      code: Code.InvalidArgument,
      field,
    });
    expect(await dumpTables(it.db)).toEqual(before);
  });

  const unlessNotFound = (error: unknown) => {
    if (ConnectError.from(error).code !== Code.NotFound) throw error;
  };

  test("many writers at once: every call is answered, and the inventory is that of one of them", {
    tags: "race",
  }, async () => {
    const write = (at: number) =>
      Promise.all([
        it.forge.replaceAllExpectedPowerShelves({ expectedPowerShelves: [numbered(1), numbered((at % 7) + 2)] }),
        it.forge.updateExpectedPowerShelf(numbered(1)).catch(unlessNotFound),
        it.forge.deleteExpectedPowerShelf({ bmcMacAddress: `02:00:00:00:00:0${(at % 7) + 2}` }).catch(unlessNotFound),
      ]);
    // All connections of the pool are in use, and nobody waits for one for so long that the server calls itself overloaded.
    const writers = Array.from({ length: 4 }, async (_, first) => {
      for (let at = first; at < 20; at += 4) await write(at);
    });
    await Promise.all(writers);
    const left = await macs();
    expect(left).toContain(MAC);
    expect(left.length).toBeLessThanOrEqual(2);
  });
});

describe("the operators' list", () => {
  test("pages in the order of MAC addresses and filters by rack and by how exploring goes", async () => {
    for (const last of [3, 1, 2]) {
      await it.forge.addExpectedPowerShelf(
        row({ bmcMacAddress: `02:00:00:00:00:0${last}`, rackId: { id: last === 3 ? "b1" : "a1" } }),
      );
    }
    await link("02:00:00:00:00:02", "shelf-2");
    const list = it.shelves.listExpectedPowerShelves;
    const first = await list({ pageSize: 2 });
    expect(first.expectedPowerShelves.map(({ bmcMac }) => bmcMac)).toEqual(["02:00:00:00:00:01", "02:00:00:00:00:02"]);
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
    expect(second.expectedPowerShelves.map(({ bmcMac }) => bmcMac)).toEqual(["02:00:00:00:00:03"]);
    expect(second.nextPageToken).toBe("");
    expect(await refusal(list({ pageToken: first.nextPageToken, rackId: "b1" }))).toMatchObject({
      field: "page_token",
    });
    expect((await list({ rackId: "b1" })).expectedPowerShelves).toHaveLength(1);
    const linked = (await list({ exploreState: ExploreState.LINKED })).expectedPowerShelves;
    expect(linked).toMatchObject([
      {
        bmcMac: "02:00:00:00:00:02",
        powerShelfId: "shelf-2",
        exploreState: ExploreState.LINKED,
        bmcEndpoint: "192.0.2.7:8443",
        labels: { zone: "a" },
        name: "a1-top",
      },
    ]);
    expect((await list({ exploreState: ExploreState.PENDING })).expectedPowerShelves).toHaveLength(2);
    expect((await list({ powerShelfId: "shelf-2" })).expectedPowerShelves).toMatchObject([{ powerShelfId: "shelf-2" }]);
    expect((await list({ powerShelfId: "shelf-1" })).expectedPowerShelves).toEqual([]);
    expect((await list({ bmcMac: "02-00-00-00-00-03" })).expectedPowerShelves).toMatchObject([{ rackId: "b1" }]);
    expect(await refusal(list({ bmcMac: "02:00" }))).toMatchObject({ code: Code.InvalidArgument, field: "bmc_mac" });
    expect(await refusal(list({ exploreState: 42 as ExploreState }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "explore_state",
    });
  });
});
