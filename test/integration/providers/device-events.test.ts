import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Trait } from "../../../simulator/devices/profile.ts";
import { startTemporarySimulator } from "../../../simulator/testing/temporary-simulator.ts";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import {
  describeDeviceEvents,
  type EventsBench,
  listenTo,
  soon,
} from "../../../src/capabilities/conformance/device-events.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createRedfishShelfProvider } from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const MAKERS = { machine: createRedfishMachineProvider, shelf: createRedfishShelfProvider } as const;
type Kind = keyof typeof MAKERS;

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
const devices: Record<Kind, { id: string; target: BmcTarget }[]> = { machine: [], shelf: [] };
const cleanUps: (() => Promise<unknown> | unknown)[] = [];

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=6", speed: 50 });
  const targetOf = (endpoint: string, username: string, password: string): BmcTarget => {
    const [address = "", port = ""] = endpoint.split(/[:/]/);
    return { address, port: Number(port), scheme: "https", username, password, trust: { mode: "pin" } };
  };
  type Row = Record<"bmc_username" | "bmc_password" | "bmc_ip_address" | "bmc_endpoint" | "machine_id", string>;
  const shelves = await site.control<(Row & { metadata: { name: string } })[]>("GET", "/inventory");
  const machines = await site.control<Row[]>("GET", "/inventory/machines");
  for (const { metadata, bmc_ip_address, bmc_username, bmc_password } of shelves.body)
    devices.shelf.push({ id: metadata.name, target: targetOf(bmc_ip_address, bmc_username, bmc_password) });
  for (const { machine_id, bmc_endpoint, bmc_username, bmc_password } of machines.body)
    devices.machine.push({ id: machine_id, target: targetOf(bmc_endpoint, bmc_username, bmc_password) });
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
afterAll(() => site[Symbol.asyncDispose]());

function providerOf(kind: Kind) {
  const gateway = createBmcGateway({ concurrency: 1 });
  const provider = MAKERS[kind]({ gateway });
  cleanUps.push(async () => {
    await provider.close();
    gateway.close();
  });
  return provider;
}

const setUp =
  (kind: Kind, ...traits: Trait[]) =>
  async (): Promise<EventsBench & { readonly id: string }> => {
    const next = devices[kind].shift();
    if (next === undefined) throw new Error("more devices are needed");
    const { id, target } = next;
    await site.control("PUT", `/devices/${id}/profile`, { profile: traits });
    type Detail = {
      power: "on" | "off";
      requests: number;
      effects: Record<string, number>;
      event_streams: { open: number };
    };
    const truth = async () => (await site.control<Detail>("GET", `/devices/${id}`)).body;
    return {
      id,
      target,
      provider: providerOf(kind),
      realPower: async () => (await truth()).power,
      switchAtRack: async (power) => void (await site.control("POST", `/devices/${id}/power`, { power })),
      commandsAccepted: async () => (await truth()).effects.power_off_commands ?? 0,
      requestsReceived: async () => (await truth()).requests,
      cause: () => Promise.reject(new Error("not here")),
      putRight: async () => undefined,
      openStreams: async () => (await truth()).event_streams.open,
      async restartBmc() {
        const manager = kind === "shelf" ? await managerOf(id) : "/redfish/v1/Managers/bmc";
        const body = { ResetType: "ForceRestart" };
        const { status } = await site.redfish(id, `${manager}/Actions/Manager.Reset`, { method: "POST", body });
        expect(status).toBeLessThan(300);
      },
    };
  };

const managerOf = async (id: string) =>
  (await site.redfish(id, "/redfish/v1/Managers")).json<{ Members: { "@odata.id": string }[] }>().Members[0]?.[
    "@odata.id"
  ];

describeDeviceEvents("a machine", setUp("machine"));
describeDeviceEvents("a power shelf", setUp("shelf"));

describe("a BMC", () => {
  /** Listens until something is heard, or the stream ends. */
  async function listen(...traits: Trait[]) {
    const bench = await setUp("machine", ...traits)();
    const listening = listenTo(bench);
    cleanUps.push(() => listening.stop());
    return { bench, ...listening };
  }

  test("that offers no events is told by its cause", async () => {
    const { ended, heard } = await listen("no_events");
    expect(await ended).toMatchObject({ code: "unsupported" });
    expect(heard.opened).toBe(0);
  });

  test("that names another host for its events is sent nothing there", async () => {
    const { ended } = await listen("events_elsewhere");
    expect(await ended).toMatchObject({ code: "protocol", disposition: "fail" });
    expect(String(await ended)).toContain("not its own (https://127.255.255.254:9/");
  });

  test("that never answers holds up its other calls for five seconds at most", async () => {
    const { ended, bench } = await listen("events_hang");
    await soon(async () => expect(await bench.openStreams()).toBe(1));
    const asked = performance.now();
    const power = bench.provider.can.power?.readPower(bench.target, aCall());
    expect(await power).toBe("on");
    expect(performance.now() - asked).toBeLessThan(seconds(8));
    expect(await ended).toMatchObject({ code: "timed_out" });
    await soon(async () => expect(await bench.openStreams()).toBe(0));
  });

  test("that is silent, or drips bytes without line ends, is open and not alive", async () => {
    const [silent, dripping] = [await listen("events_silent"), await listen("events_drip")];
    await soon(() => expect([silent.heard.opened, dripping.heard.opened]).toEqual([1, 1]));
    const telling = await listen();
    await soon(() => expect(telling.heard.alive).toBeGreaterThan(0));
    await dripping.bench.switchAtRack("off");
    // Another device shows that the time of an event, and of a sign of life, is over.
    const alive = telling.heard.alive;
    await telling.bench.switchAtRack("off");
    await soon(() => expect(telling.heard.happened).toBeGreaterThan(0));
    await soon(() => expect(telling.heard.alive).toBeGreaterThan(alive + 1));
    for (const { heard } of [silent, dripping]) expect(heard).toMatchObject({ opened: 1, alive: 0, happened: 0 });
    dripping.stop();
    expect(await dripping.ended).toBe("stopped");
  });

  test("that floods is read slowly, is heard, and can be left", async () => {
    const { ended, heard, stop, bench } = await listen("events_flood");
    await soon(() => expect(heard.happened).toBeGreaterThan(0));
    const [before, since] = [heard.happened, performance.now()];
    await soon(() => expect(heard.happened - before).toBeGreaterThan(50));
    // After each quarter of a megabyte, in chunks of 16 KiB, it rests for a second: so many need more than one, however fast they come.
    expect(performance.now() - since).toBeGreaterThan(900);
    expect(await bench.provider.can.power?.readPower(bench.target, aCall())).toBe("on");
    stop();
    expect(await ended).toBe("stopped");
  });

  test("that cuts the stream after each event is heard before", async () => {
    const { ended, heard, bench } = await listen("events_cut");
    await soon(() => expect(heard.alive).toBeGreaterThan(0));
    await bench.switchAtRack("off");
    expect(await ended).toMatchObject({ code: "unreachable" });
    expect(heard.happened).toBe(1);
  });

  test("that serves no more streams says so", async () => {
    const bench = await setUp("machine")();
    const streams = [1, 2, 3].map(() => listenTo(bench));
    cleanUps.push(() => streams.forEach(({ stop }) => void stop()));
    const refused = await Promise.race(streams.map(({ ended }) => ended));
    expect(refused).toMatchObject({ code: "busy", status: 503 });
    await soon(() => expect(streams.map(({ heard }) => heard.opened).sort()).toEqual([0, 1, 1]));
  });

  test("is signed in to with the one session of all other calls", async () => {
    const { bench, heard } = await listen();
    await soon(() => expect(heard.opened).toBe(1));
    await bench.provider.can.power?.readPower(bench.target, aCall());
    const sessions = await site.redfish(bench.id, "/redfish/v1/SessionService/Sessions");
    expect(sessions.json()).toMatchObject({ "Members@odata.count": 1 });
  });

  test("that rejects the credentials is asked no further", async () => {
    const bench = await setUp("machine", "no_sessions")();
    const { ended } = listenTo({ ...bench, target: { ...bench.target, password: "wrong" } });
    expect(await ended).toMatchObject({ code: "credentials_rejected" });
  });
});

describe("the place of the events", () => {
  /** A BMC of the test's own, whose EventService is as given. */
  async function answering(service: object, type = "text/event-stream") {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? "");
      if (request.url === "/redfish/v1/") return response.end('{"EventService":{"@odata.id":"/redfish/v1/E"}}');
      if (request.url === "/redfish/v1/E") return response.end(JSON.stringify(service));
      return response.writeHead(200, { "content-type": type }).end("data: a\n\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    cleanUps.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const account = { username: "root", password: "canary-4711" };
    const target: BmcTarget = { address: "127.0.0.1", port, scheme: "http", ...account, trust: { mode: "off" } };
    return { asked, port, target, service };
  }

  test.each([
    ["//127.0.0.1:1/redfish/v1/SSE"],
    ["https://evil.example/redfish/v1/SSE"],
    ["/elsewhere"],
    ["/redfish/../admin"],
    ["redfish/v1/SSE"],
  ])("is refused where it is not the BMC's own: %s", async (ServerSentEventUri) => {
    const { target, asked } = await answering({ ServerSentEventUri });
    expect(await listenTo({ provider: providerOf("machine"), target }).ended).toMatchObject({ code: "protocol" });
    expect(asked.filter((path) => !["/redfish/v1/", "/redfish/v1/E"].includes(path))).toEqual([]);
  });

  test("may be a whole address of the BMC itself, and events alone are asked for where that is offered", async () => {
    const SSEFilterPropertiesSupported = { EventFormatType: true };
    const own: Record<string, unknown> = { SSEFilterPropertiesSupported };
    const { target, asked, port } = await answering(own);
    own.ServerSentEventUri = `http://127.0.0.1:${port}/redfish/v1/SSE`;
    const { ended, heard } = listenTo({ provider: providerOf("machine"), target });
    expect(await ended).toMatchObject({ code: "unreachable" });
    expect(asked.at(-1)).toBe("/redfish/v1/SSE?$filter=EventFormatType%20eq%20Event");
    expect(heard).toMatchObject({ opened: 1, alive: 1, happened: 1 });
  });

  test("that answers with something else is no stream", async () => {
    const { target } = await answering({ ServerSentEventUri: "/redfish/v1/SSE" }, "text/html");
    const { ended, heard } = listenTo({ provider: providerOf("machine"), target });
    expect(await ended).toMatchObject({ code: "protocol" });
    expect(heard.opened).toBe(0);
  });
});
