import { expect, test } from "vitest";
import { seconds } from "../../../src/kernel/time/duration.ts";
import * as journal from "../../../src/store/lifecycle/journal.ts";
import type { PowerShelfRecord } from "../../../src/store/power-shelf/power-shelves.ts";
import { type Datacentre, startDatacentre } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

interface Device {
  readonly id: string;
  readonly serial: string;
}

let dc: Datacentre;
beforeAll(async () => {
  dc = await startDatacentre({ site: "racks=1", monitorEvery: seconds(1) });
  await dc.expectAll();
  await dc.until(async () => (await dc.shelves()).filter(({ state }) => state.name === "ready").length === 8);
});
afterAll(() => dc.close());

async function pick(index: number): Promise<{ shelf: PowerShelfRecord; device: Device }> {
  const shelf = (await dc.shelves())[index];
  const device = (await dc.control<Device[]>("GET", "/devices")).find(({ serial }) => serial === shelf?.facts.serial);
  if (!shelf || !device) throw new Error("the site has fewer shelves");
  return { shelf, device };
}
const historyOf = ({ id }: PowerShelfRecord) =>
  journal.listHistory(dc.db, {
    key: { kind: "power_shelf", id },
    limit: 20,
    types: [],
    newestFirst: true,
    after: null,
  });

test("power that is switched at the rack is told to watchers by the next monitoring look", async () => {
  const { device } = await pick(0);
  await dc.control("POST", `/devices/${device.id}/power`, { power: "off" });
  const { shelf } = await pick(0);
  const told = async () =>
    (await historyOf(shelf)).find(({ type, data }) => {
      const facts = data.facts as { powerState?: string } | undefined;
      return type === "facts_changed" && facts?.powerState === "off";
    });
  await dc.until(async () => (await told()) !== undefined);
  // By the first pass that began after it; another one may have been under way.
  expect(Number((await told())?.version)).toBeLessThanOrEqual(shelf.version + 2);
  expect((await dc.shelves())[0]).toMatchObject({ state: { name: "ready" }, facts: { powerState: "off" } });
});

test("a shelf that stops answering stays ready and says so, and says when it answers again", async () => {
  const { shelf, device } = await pick(1);
  const fault = await dc.control<{ id: string }>("POST", "/faults", { device: device.id, fault: { type: "drop" } });
  const now = async () => (await dc.shelves())[1];
  await dc.until(async () => (await now())?.outcome?.type === "failing");
  expect((await now())?.state.name).toBe("ready");
  await dc.control("DELETE", `/faults/${fault.id}`);
  await dc.until(async () => (await now())?.outcome === null, seconds(45));
  expect((await historyOf(shelf)).map(({ type }) => type)).toEqual(expect.arrayContaining(["failing", "recovered"]));
});

test("monitoring that finds nothing new tells nobody", async () => {
  const { shelf } = await pick(2);
  const before = await historyOf(shelf);
  await dc.until(async () => {
    const now = (await dc.shelves())[2];
    return now !== undefined && now.version > shelf.version + 2;
  });
  expect(await historyOf(shelf)).toEqual(before);
});
