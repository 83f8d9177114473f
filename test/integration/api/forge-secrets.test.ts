import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PowerShelfMaintenanceOperation as Operation } from "../../../contract/forge/forge_pb.js";
import { ExploreState } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { type Datacentre, startDatacentre } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { RecordingLog } from "./api-under-test.ts";
import { dumpTables, refusal, type Surface, startSurface } from "./forge-under-test.ts";

const RIGHT = "canary-right-4f1c9b";
const WRONG = "canary-wrong-77e2d0";
const spellings = [RIGHT, WRONG].flatMap((canary) => [
  canary,
  Buffer.from(canary).toString("base64").replace(/=+$/, ""),
  Buffer.from(canary).toString("hex"),
]);

let directory: string;
let dc: Datacentre;
let it: Surface;
const engineLog = new RecordingLog();
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-canary-"));
  const site = join(directory, "site.json");
  const shelves = [1, 2].map((number) => ({ id: `shelf-${number}`, username: "root", password: RIGHT }));
  writeFileSync(site, JSON.stringify({ racks: [{ id: "a1", shelves }] }));
  dc = await startDatacentre({ site, log: engineLog });
  it = await startSurface(dc.deps);
});
afterAll(async () => {
  await it.close();
  await dc.close();
  rmSync(directory, { recursive: true, force: true });
});

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_key, part) => {
    if (typeof part === "bigint") return String(part);
    return part instanceof Error ? { ...part, message: part.message, stack: part.stack, cause: part.cause } : part;
  });

interface InventoryRow {
  readonly bmc_mac_address: string;
  readonly shelf_serial_number: string;
  readonly bmc_ip_address: string;
}

test("a password that was handed in appears in no answer, event, error, log or table outside the secret store", async () => {
  const answers: unknown[] = [];
  const [first, second] = (await dc.control<InventoryRow[]>("GET", "/inventory")).map((row, index) => ({
    bmcMacAddress: row.bmc_mac_address,
    bmcUsername: "root",
    bmcPassword: index === 0 ? RIGHT : WRONG,
    shelfSerialNumber: row.shelf_serial_number,
    bmcIpAddress: row.bmc_ip_address,
  }));
  if (!first || !second) throw new Error("the site has two shelves");
  answers.push(await refusal(it.forge.addExpectedPowerShelf({ ...first, bmcMacAddress: "broken" })));
  answers.push(await refusal(it.forge.addExpectedPowerShelf({ ...first, bmcUsername: "" })));
  answers.push(await it.forge.addExpectedPowerShelf(first), await it.forge.addExpectedPowerShelf(second));
  answers.push(await refusal(it.forge.addExpectedPowerShelf(first)));
  answers.push(await refusal(it.forge.replaceAllExpectedPowerShelves({ expectedPowerShelves: [first, first] })));
  const explored = async () =>
    (await it.shelves.listExpectedPowerShelves({})).expectedPowerShelves.map(({ exploreState }) => exploreState);
  await dc.until(async () => {
    const states = await explored();
    return states.includes(ExploreState.LINKED) && states.includes(ExploreState.WRONG_CREDENTIALS);
  });
  await dc.until(async () => (await dc.shelves())[0]?.state.name === "ready");
  const id = (await dc.shelves())[0]?.id ?? "";
  answers.push(await it.forge.updateExpectedPowerShelf(first));
  await it.forge.setPowerShelfMaintenance({ powerShelfIds: [{ id }], operation: Operation.POWER_OFF });
  await dc.until(async () => (await dc.shelves())[0]?.lastMaintenanceRequest?.outcome === "completed");
  answers.push(
    await it.shelves.createPowerShelf({
      id: "made-by-hand",
      bmcMac: "02:00:00:00:99:99",
      bmcEndpoint: "127.0.0.1:1",
      bmcUsername: "root",
      bmcPassword: RIGHT,
      requestId: "once",
    }),
  );

  answers.push(
    await it.forge.findPowerShelves({}),
    await it.forge.getAllExpectedPowerShelves({}),
    await it.forge.getAllExpectedPowerShelvesLinked({}),
    await it.forge.getExpectedPowerShelf({ bmcMacAddress: first.bmcMacAddress }),
    await it.forge.findPowerShelfStateHistories({ powerShelfIds: [{ id }] }),
    await it.shelves.getPowerShelf({ id }),
    await it.shelves.listPowerShelves({}),
    await it.shelves.listExpectedPowerShelves({}),
    await it.history.listHistory({ kind: "power_shelf", id }),
  );
  for (const { id: row } of (await it.shelves.listExpectedPowerShelves({})).expectedPowerShelves)
    answers.push(await it.history.listHistory({ kind: "expected_power_shelf", id: row }));

  const seen = {
    answers: textOf(answers),
    tables: textOf(await dumpTables(dc.db)),
    apiLog: textOf(it.api.log.lines),
    engineLog: textOf(engineLog.lines),
  };
  expect(seen.answers).toContain(first.shelfSerialNumber);
  expect(seen.tables).toContain(`bmc/${first.bmcMacAddress}`);
  for (const [where, text] of Object.entries(seen)) {
    for (const spelling of spellings) expect(text.includes(spelling), `${spelling} in ${where}`).toBe(false);
  }
});
