import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type ExpectedPowerShelf, Forge } from "../../../../contract/forge/forge_pb.js";
import { ExploreState, PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { type FakeTerminalOptions, noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const directory = mkdtempSync(join(tmpdir(), "millwright-cli-"));
afterAll(() => rmSync(directory, { recursive: true }));
const fileWith = (text: string) => {
  const path = join(directory, `${Math.random()}.txt`);
  writeFileSync(path, text);
  return path;
};

const entry = {
  id: "7b0f3f5e-0000-4000-8000-000000000001",
  bmcMac: "02:00:5e:10:00:01",
  bmcEndpoint: "10.0.0.7:8443",
  bmcUsername: "root",
  serial: "SN1",
  name: "one",
  labels: { row: "3" },
  rackId: "r1",
  powerShelfId: "ps-1",
  exploreState: ExploreState.WRONG_SERIAL,
  exploreMessage: "its BMC shows serial SN9",
};

async function run(line: string | readonly string[], options: FakeTerminalOptions = {}) {
  const asked: { bmcMac: string; powerShelfId: string }[] = [];
  const sent: { call: string; shelves: readonly ExpectedPowerShelf[] }[] = [];
  const note = (call: string) => (shelf: ExpectedPowerShelf) => noted(sent, { call, shelves: [shelf] });
  const result = await runAgainst(
    (router) => {
      router.service(Forge, {
        addExpectedPowerShelf: note("add"),
        updateExpectedPowerShelf: note("update"),
        getExpectedPowerShelf: ({ bmcMacAddress, expectedPowerShelfId }) => ({
          bmcMacAddress: bmcMacAddress || "02:00:5e:10:00:01",
          bmcUsername: "root",
          shelfSerialNumber: "SN1",
          bmcIpAddress: "10.0.0.7",
          metadata: { name: "one", labels: [{ key: "row", value: "3" }] },
          expectedPowerShelfId: expectedPowerShelfId ?? { value: entry.id },
        }),
        replaceAllExpectedPowerShelves: ({ expectedPowerShelves }) =>
          noted(sent, { call: "replace", shelves: expectedPowerShelves }),
        deleteAllExpectedPowerShelves: () => noted(sent, { call: "delete-all", shelves: [] }),
      });
      router.service(PowerShelfService, {
        listExpectedPowerShelves: ({ bmcMac, powerShelfId }) => {
          asked.push({ bmcMac, powerShelfId });
          const isIt = bmcMac === "" || bmcMac.replace(/[:.-]/g, "").toLowerCase() === "02005e100001";
          return { expectedPowerShelves: isIt ? [entry] : [] };
        },
      });
    },
    line,
    options,
  );
  return { ...result, sent, asked };
}

test("add sends the entry, with both spellings of its options", async () => {
  const password = fileWith("hunter2\n");
  for (const line of [
    `eps add --bmc-mac 02:00:5e:10:00:01 --bmc-username root --serial SN1 --bmc-endpoint 10.0.0.7 --rack r1 --label row=3 --bmc-password-file ${password}`,
    `expected-power-shelf add --bmc-mac-address 02:00:5e:10:00:01 --bmc-username root --shelf-serial-number SN1 --bmc-ip-address 10.0.0.7 --rack-id r1 --label row=3 --bmc-password-file ${password}`,
  ]) {
    const { code, sent } = await run(line);
    expect(code).toBe(0);
    expect(sent[0]?.shelves[0]).toMatchObject({
      bmcMacAddress: "02:00:5e:10:00:01",
      bmcUsername: "root",
      bmcPassword: "hunter2",
      shelfSerialNumber: "SN1",
      bmcIpAddress: "10.0.0.7",
      rackId: { id: "r1" },
      metadata: { labels: [{ key: "row", value: "3" }] },
    });
  }
});

test("update changes only what is given, and does not ask for the password", async () => {
  const { code, sent } = await run("eps update 02:00:5e:10:00:01 --serial SN2", { isTTY: true });
  expect(code).toBe(0);
  expect(sent[0]).toMatchObject({
    call: "update",
    shelves: [
      {
        shelfSerialNumber: "SN2",
        bmcUsername: "root",
        bmcPassword: "",
        metadata: { name: "one", labels: [{ key: "row" }] },
      },
    ],
  });
});

test("show finds an entry by any notation of its MAC address, and tells how finding it goes", async () => {
  const { out, asked } = await run("eps show 02-00-5E-10-00-01");
  expect(asked).toEqual([{ bmcMac: "02-00-5E-10-00-01", powerShelfId: "" }]);
  expect(out).toMatch(/Explored: +wrong_serial/);
  expect(out).toContain("its BMC shows serial SN9");
  expect((await run("eps show 02:00:5e:00:00:00")).code).toBe(3);
});

test("show finds an entry by its id without reading all of them", async () => {
  const { out, asked } = await run(`eps show ${entry.id}`);
  expect(out).toContain("its BMC shows serial SN9");
  expect(asked).toEqual([{ bmcMac: "02:00:5e:10:00:01", powerShelfId: "" }]);
});

test("list can be narrowed to one BMC or one power shelf", async () => {
  const { asked } = await run("eps list --bmc-mac 02:00:5e:10:00:01 --power-shelf ps-1");
  expect(asked).toEqual([{ bmcMac: "02:00:5e:10:00:01", powerShelfId: "ps-1" }]);
});

test("an unknown --explore-state is refused with the words that are known", async () => {
  const { code, err } = await run("eps list --explore-state lost");
  expect(code).toBe(2);
  expect(err).toContain("none of pending, linked, unreachable, wrong_credentials, wrong_serial, detached, failed");
});

describe("replace-all", () => {
  const wanted = {
    bmcMacAddress: "02:00:5e:10:00:01",
    bmcIpAddress: "10.0.0.7:8443",
    shelfSerialNumber: "SN1",
    rackId: { id: "r1" },
  };

  test("accepts what list prints", async () => {
    const { out } = await run("eps list -o json");
    const { code, sent, err } = await run("eps replace-all -f -", { stdin: out });
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(sent[0]?.shelves[0]).toMatchObject({
      ...wanted,
      metadata: { name: "one", labels: [{ key: "row", value: "3" }] },
      expectedPowerShelfId: { value: entry.id },
    });
  });

  test.each([
    [
      "YAML",
      "- bmc_mac: 02:00:5e:10:00:01\n  bmc_endpoint: 10.0.0.7:8443\n  serial: SN1\n  rack_id: r1\n  bmc_password: x\n",
    ],
    [
      "the contract's own JSON",
      '{"expectedPowerShelves":[{"bmcMacAddress":"02:00:5e:10:00:01","bmcIpAddress":"10.0.0.7:8443","shelfSerialNumber":"SN1","rackId":{"id":"r1"},"bmcPassword":"x"}]}',
    ],
  ])("takes %s", async (_what, text) => {
    const { sent } = await run(`eps replace-all -f ${fileWith(text)}`);
    expect(sent[0]?.shelves[0]).toMatchObject({ ...wanted, bmcPassword: "x" });
  });

  test.each([
    ["not a list", "name: x", "a list of expected power shelves is wanted"],
    ["an unknown field", '[{"bmc_mac":"m","colour":"red"}]', "entry 1: "],
    ["a number for a text", '[{"bmc_mac":"m"},{"bmc_mac":7}]', "entry 2: "],
    ["something else than YAML", "a: [", "neither JSON nor YAML"],
    ["an entry that is none", "[7]", "entry 1 is not an object"],
  ])("refuses %s by name and sends nothing", async (_what, text, message) => {
    const { code, err, sent } = await run(`eps replace-all -f ${fileWith(text)}`);
    expect({ code, sent }).toEqual({ code: 2, sent: [] });
    expect(err).toContain(message);
  });

  test.each([
    ["a wrong type beside it", '[{"bmc_password":"c4nary-secret","serial":[]}]'],
    ["a wrong type of its own", '[{"bmc_password":["c4nary-secret"]}]'],
    ["a broken file", '[{"bmc_password":"c4nary-secret" "x"}'],
  ])("never repeats a password, with %s", async (_what, text) => {
    const { code, err, out } = await run(`eps replace-all -f ${fileWith(text)}`);
    expect(code).toBe(2);
    expect(err + out).not.toContain("c4nary-secret");
  });
});

test("delete-all asks a person first", async () => {
  expect(await run("eps delete-all", { isTTY: true, answer: "no" })).toMatchObject({ code: 2, sent: [] });
  expect((await run("eps delete-all", { isTTY: true, answer: "yes" })).sent).toHaveLength(1);
  expect((await run("eps delete-all --yes", { isTTY: true })).sent).toHaveLength(1);
});

test.each([
  ["eps delete-all", {}],
  ["eps replace-all -f -", { stdin: "[]", isTTY: true }],
])("%s is refused where there is nobody to ask, and done with --yes", async (line, options) => {
  const refused = await run(line, options);
  expect(refused).toMatchObject({ code: 2, sent: [] });
  expect(refused.err).toContain("hint: --yes");
  expect((await run(`${line} --yes`, options)).sent).toHaveLength(1);
});

test("replace-all asks before it drops what the file does not have, and only then", async () => {
  const without = fileWith("- bmc_mac: 02:00:5e:10:00:09\n");
  const asked = await run(`eps replace-all -f ${without}`, { isTTY: true, answer: "no" });
  expect(asked).toMatchObject({ code: 2, sent: [] });
  expect(asked.err).toContain("Drop 1 expected power shelves that are not in the file?");
  expect((await run(`eps replace-all -f ${fileWith("- bmc_mac: 02-00-5E-10-00-01\n")}`)).sent).toHaveLength(1);
});

test("update without anything to change is refused", async () => {
  const { code, sent, err } = await run("eps update 02:00:5e:10:00:01");
  expect({ code, sent }).toEqual({ code: 2, sent: [] });
  expect(err).toContain("no change is given");
});

test("show of a detached entry says what that means, and the command that brings it back", async () => {
  const detached = { ...entry, powerShelfId: "", exploreState: ExploreState.DETACHED };
  const { out } = await runAgainst(
    (router) =>
      router.service(PowerShelfService, { listExpectedPowerShelves: () => ({ expectedPowerShelves: [detached] }) }),
    "eps show 02:00:5e:10:00:01",
  );
  expect(out).toContain("its power shelf was deleted");
  expect(out).toContain("`millwright expected-power-shelf update 02:00:5e:10:00:01 --serial SN1` brings it back");
});

test("the list is in the order of racks and names", async () => {
  const shelves = [
    ["r10", "a"],
    ["r2", "shelf-10"],
    ["r2", "shelf-2"],
  ].map(([rackId, name]) => ({ ...entry, rackId: rackId ?? "", name: name ?? "" }));
  const { out } = await runAgainst(
    (router) =>
      router.service(PowerShelfService, { listExpectedPowerShelves: () => ({ expectedPowerShelves: shelves }) }),
    "eps list -o json",
  );
  expect((JSON.parse(out) as { name: string }[]).map(({ name }) => name)).toEqual(["shelf-2", "shelf-10", "a"]);
});
