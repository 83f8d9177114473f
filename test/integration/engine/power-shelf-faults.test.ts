import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { setPowerShelfMaintenance } from "../../../src/services/power-shelf/power-shelves.ts";
import type { PowerShelfRecord } from "../../../src/store/power-shelf/power-shelves.ts";
import { type Datacentre, startDatacentre, tester } from "../../support/datacentre.ts";

interface Device {
  readonly id: string;
  readonly serial: string;
  readonly power: string;
  readonly effects: { readonly power_on_commands: number; readonly power_off_commands: number };
}
interface Fault {
  readonly fault: Readonly<Record<string, unknown>>;
  readonly method?: string;
  readonly path?: string;
  readonly times?: number;
}

let dc: Datacentre;
let free: PowerShelfRecord[];
beforeAll(async () => {
  dc = await startDatacentre({ site: "racks=4", speed: 50, monitorEvery: seconds(120) });
  await dc.expectAll();
  await dc.until(async () => (await dc.shelves()).filter(({ state }) => state.name === "ready").length === 32); // enough for second tries, too
  free = await dc.shelves();
});
afterAll(() => dc.close());

const COMMAND = { method: "POST", path: "*/Actions/*" };

/** A shelf that no other test uses, with its device. */
async function takeShelf(): Promise<{ id: string; device: Device }> {
  const shelf = free.shift();
  const device = (await dc.control<Device[]>("GET", "/devices")).find(({ serial }) => serial === shelf?.facts.serial);
  if (!shelf || !device) throw new Error("no shelf is left");
  return { id: shelf.id, device };
}
const shelfOf = async (id: string): Promise<PowerShelfRecord> => {
  const shelf = (await dc.shelves()).find((one) => one.id === id);
  if (!shelf) throw new Error(`${id} is gone`);
  return shelf;
};
const deviceOf = ({ id }: Device) => dc.control<Device>("GET", `/devices/${id}`);
const isOver = async (id: string) => {
  const { maintenanceRequest, state } = await shelfOf(id);
  return maintenanceRequest === null && state.name !== "maintenance";
};

/** Asks for power off on a shelf whose BMC misbehaves so. */
async function powerOff(faults: readonly Fault[]): Promise<{ id: string; device: Device }> {
  const taken = await takeShelf();
  for (const fault of faults) await dc.control("POST", "/faults", { device: taken.device.id, ...fault });
  await setPowerShelfMaintenance(dc.deps, tester, {
    powerShelfIds: [taken.id],
    operation: "power_off",
    reference: "FAULT-1",
  });
  return taken;
}

/** The deadline passes, once the shelf has said what it is waiting for. */
async function letTheDeadlinePass(id: string): Promise<void> {
  await dc.until(async () => {
    const { state, outcome } = await shelfOf(id);
    return state.name === "maintenance" && outcome !== null;
  });
  await dc.db.query("update power_shelves set state_since = now() - interval '5 minutes' where id = $1", [id]);
  await dc.db.query("update work set wake_at = least(wake_at, now()) where id = $1 and lease_until is null", [id]);
}

describe.concurrent("a BMC that gets in the way, but not for ever: the operation completes, and the shelf hears it once", () => {
  test.each<[string, Fault[]]>([
    ["answers the command with 503 twice", [{ ...COMMAND, fault: { type: "status", status: 503 }, times: 2 }]],
    ["answers reads with 500 twice", [{ method: "GET", fault: { type: "status", status: 500 }, times: 2 }]],
    [
      "asks to be left alone for a second",
      [{ method: "GET", fault: { type: "status", status: 429, headers: { "retry-after": "1" } }, times: 1 }],
    ],
    ["is slow", [{ fault: { type: "latency", ms: 150 } }]],
    ["cuts the connection before the command", [{ ...COMMAND, fault: { type: "drop" }, times: 1 }]],
    [
      "carries the command out and cuts the connection",
      [{ ...COMMAND, fault: { type: "drop", when: "after" }, times: 1 }],
    ],
    [
      "carries the command out and answers with 500",
      [{ ...COMMAND, fault: { type: "status", status: 500, when: "after" }, times: 1 }],
    ],
    ["carries the command out and never answers", [{ ...COMMAND, fault: { type: "hang", when: "after" }, times: 1 }]],
    ["never answers a read", [{ method: "GET", fault: { type: "hang" }, times: 1 }]],
    ["comes and goes", [{ fault: { type: "flap", up_ms: 700, down_ms: 300 } }]],
    ["carries the command out and answers with garbage", [{ ...COMMAND, fault: { type: "garbage" }, times: 1 }]],
    ["answers reads with garbage twice", [{ method: "GET", fault: { type: "garbage" }, times: 2 }]],
  ])("%s", async (_, faults) => {
    const { id, device } = await powerOff(faults);
    await dc.until(() => isOver(id), seconds(50));
    const shelf = await shelfOf(id);
    expect(shelf.state.cause).toBeUndefined();
    expect(shelf).toMatchObject({
      state: { name: "ready" },
      facts: { powerState: "off" },
      lastMaintenanceRequest: { outcome: "completed" },
    });
    expect(await deviceOf(device)).toMatchObject({ power: "off", effects: { power_off_commands: 1 } });
  });
});

describe.concurrent("a BMC that never does what it should: the operation fails, and the cause names what happened", () => {
  test.each<[string, Fault[], RegExp, number]>([
    [
      "answers the command with 500",
      [{ ...COMMAND, fault: { type: "status", status: 500 } }],
      /^not done within 4m: .*POST .* status 500/,
      0,
    ],
    [
      "cuts every connection",
      [{ fault: { type: "drop" } }],
      /^not done within 4m: BMC .* (was cut|closed|not answer|reset|hang up)/,
      0,
    ],
    ["never answers", [{ fault: { type: "hang" } }], /^not done within 4m: BMC .*answer/, 0],
    [
      "accepts the command and does nothing",
      [{ fault: { type: "lie_accept" } }],
      /^not done within 4m: shelf reports power on, wanted off/,
      1,
    ],
    [
      "says that it is off while its meter says otherwise",
      [{ fault: { type: "lie_state" } }],
      /^not done within 4m: /,
      1,
    ],
    ["answers with garbage", [{ method: "GET", fault: { type: "garbage" } }], /^not done within 4m: .*JSON/i, 0],
  ])("%s", async (_, faults, cause, commands) => {
    const { id, device } = await powerOff(faults);
    await letTheDeadlinePass(id);
    await dc.until(() => isOver(id), seconds(50));
    const shelf = await shelfOf(id);
    expect(shelf.state).toMatchObject({ name: "error", cause: expect.stringMatching(cause) });
    expect(shelf.lastMaintenanceRequest).toMatchObject({ outcome: "failed", message: shelf.state.cause });
    const { power, effects } = await deviceOf(device);
    expect({ power, commands: effects.power_off_commands }).toEqual({ power: "on", commands });
  });

  test.each<[string, Fault[], RegExp]>([
    ["refuses the credentials", [{ fault: { type: "wrong_credentials" } }], /^wrong credentials: /],
    ["refuses the command", [{ ...COMMAND, fault: { type: "status", status: 400 } }], /refused with status 400/],
  ])("%s, and no deadline is waited for", async (_, faults, cause) => {
    const { id, device } = await powerOff(faults);
    await dc.until(() => isOver(id));
    expect((await shelfOf(id)).state).toMatchObject({ name: "error", cause: expect.stringMatching(cause) });
    expect(await deviceOf(device)).toMatchObject({ power: "on", effects: { power_off_commands: 0 } });
  });

  test("answers for another serial number, and is not sent the command", async () => {
    const { id, device } = await powerOff([{ fault: { type: "wrong_serial", serial: "SOMEBODY-ELSE" } }]);
    await letTheDeadlinePass(id);
    await dc.until(() => isOver(id));
    expect((await shelfOf(id)).state).toMatchObject({
      name: "error",
      cause: expect.stringContaining("answers for serial SOMEBODY-ELSE"),
    });
    expect(await deviceOf(device)).toMatchObject({ power: "on", effects: { power_off_commands: 0 } });
  });
});
