import { get } from "node:https";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Trait } from "../../devices/profile.ts";
import { type MachineRow, startTemporarySimulator } from "../../testing/temporary-simulator.ts";

const SSE = "/redfish/v1/EventService/SSE";
const MACHINE = "m-rack1-01";

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
let row: MachineRow;

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1", speed: 1 });
  row = (await site.control<MachineRow[]>("GET", "/inventory/machines")).body.find(
    ({ machine_id }) => machine_id === MACHINE,
  ) as MachineRow;
});
afterAll(() => site[Symbol.asyncDispose]());
beforeEach(() => takeOn());

const takeOn = (...traits: Trait[]) => site.control("PUT", `/devices/${MACHINE}/profile`, { profile: traits });
const streams = async () =>
  (await site.control<{ event_streams: { open: number } }>("GET", `/devices/${MACHINE}`)).body.event_streams.open;
const switchPower = (power: "on" | "off") => site.control("POST", `/devices/${MACHINE}/power`, { power });
const eventService = async () => (await site.redfish(MACHINE, "/redfish/v1/EventService")).json();

/** One client. `text` is all that it was sent; `until` waits for a part of it. */
async function follow() {
  const [host = "", port = ""] = row.bmc_endpoint.split(/[:/]/);
  const seen = { text: "", status: 0, type: "", ended: false };
  const waiting: (() => void)[] = [];
  const news = () => void waiting.splice(0).forEach((wake) => void wake());
  const auth = `${row.bmc_username}:${row.bmc_password}`;
  const request = get({ host, port, path: SSE, auth, rejectUnauthorized: false }, (response) => {
    Object.assign(seen, { status: response.statusCode, type: response.headers["content-type"] });
    response.on("data", (chunk: Buffer) => {
      seen.text += chunk.toString();
      news();
    });
    response.on("end", () => {
      seen.ended = true;
      news();
    });
    news();
  });
  request.on("error", news);
  const until = async (done: () => boolean) => {
    while (!done()) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  await until(() => seen.status !== 0);
  const leave = async () => {
    const before = await streams();
    request.destroy();
    while (before > 0 && (await streams()) >= before);
  };
  return { seen, until, leave };
}

describe("a stream of events", () => {
  test("is offered, keeps itself alive, and tells of power and of health", async () => {
    expect(await eventService()).toMatchObject({ ServiceEnabled: true, ServerSentEventUri: SSE });
    const { seen, until, leave } = await follow();
    await until(() => seen.text.includes(": stream keep-alive\n\n"));
    expect([seen.status, seen.type]).toEqual([200, "text/event-stream"]);
    await switchPower("off");
    await until(() => seen.text.includes("The system was powered off."));
    await site.control("PUT", `/devices/${MACHINE}/health`, { sensor: "inlet_temperature", health: "Warning" });
    await until(() => seen.text.includes("ResourceStatusChanged"));
    expect(seen.text).toMatch(/^id: 1\ndata: \{\ndata: /m);
    await site.control("PUT", `/devices/${MACHINE}/health`, { sensor: "inlet_temperature", health: null });
    await switchPower("on");
    await leave();
  });

  test("needs a sign-in, and is for two clients at a time", async () => {
    expect((await site.redfish(MACHINE, SSE, { auth: null })).status).toBe(401);
    const [one, other] = [await follow(), await follow()];
    await Promise.all([one.until(() => one.seen.text !== ""), other.until(() => other.seen.text !== "")]);
    expect(await streams()).toBe(2);
    expect((await site.redfish(MACHINE, SSE)).status).toBe(503);
    await one.leave();
    await other.leave();
    expect(await streams()).toBe(0);
  });

  test("is not offered, or elsewhere, by controllers with the trait for it", async () => {
    await takeOn("no_events");
    expect(await eventService()).not.toHaveProperty("ServerSentEventUri");
    expect((await site.redfish(MACHINE, SSE)).status).toBe(404);
    await takeOn("events_elsewhere");
    expect((await eventService()).ServerSentEventUri).toMatch(/^https:\/\/127\.255\./);
  });

  test("drips, floods, forgets and is cut by controllers with the trait for it", async () => {
    await takeOn("events_drip");
    const dripping = await follow();
    await dripping.until(() => dripping.seen.text.length > 10);
    expect(dripping.seen.text).not.toContain("\n");
    await dripping.leave();
    await takeOn("events_flood");
    const flooding = await follow();
    await flooding.until(() => flooding.seen.text.length > 100_000);
    await flooding.leave();
    await takeOn("events_forgotten");
    const forgetful = await follow();
    await switchPower("off");
    await forgetful.until(() => forgetful.seen.text.split("keep-alive").length > 2);
    expect(forgetful.seen.text).not.toContain("data:");
    await forgetful.leave();
    await takeOn("events_cut", "events_without_keep_alive");
    const cut = await follow();
    await switchPower("on");
    await cut.until(() => cut.seen.ended);
    expect(cut.seen.text).toMatch(/^id: 1\n/);
    await cut.leave();
  });
});
