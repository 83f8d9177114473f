import { afterEach, describe, expect, test, vi } from "vitest";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall, type DeviceBench } from "../../../src/capabilities/conformance/device-bench.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { milliseconds, minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { createRedfishClient } from "../../../src/providers/redfish/client.ts";
import { createBmcGateway, type GatewayObserver } from "../../../src/providers/transport/bmc-gateway.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { benchFor, type Reach, reach, type SimulatedDevice, type SimulatedSite, startSite } from "./simulated-bench.ts";

let site: SimulatedSite;
let devices: readonly SimulatedDevice[];
let open: Reach[] = [];
let next = 0;

beforeAll(async () => {
  site = await startSite(20);
  devices = [...(await site.devices("liteon")), ...(await site.devices("standard"))];
});
afterEach(async () => {
  await site.clearFaults();
  await Promise.all(open.map((one) => one.close()));
  open = [];
});
afterAll(() => site.stop());

interface Bench extends DeviceBench {
  readonly device: SimulatedDevice;
  readonly reached: Reach;
  readonly calls: Parameters<GatewayObserver["onCall"]>[0][];
  read(): Promise<string>;
  fault(fault: Readonly<Record<string, unknown>>, where?: Readonly<Record<string, unknown>>): Promise<void>;
}

async function setUp(options: Parameters<typeof reach>[0] = {}): Promise<Bench> {
  const device = devices[next++ % devices.length];
  if (device === undefined) throw new Error("the site is empty");
  const calls: Bench["calls"] = [];
  const reached = reach({
    ...options,
    gateway: { observer: { onCall: (call) => calls.push(call) }, ...options.gateway },
  });
  open.push(reached);
  const bench = await benchFor(site, device, reached);
  const read = () => reached.provider.can.power.readPower(bench.target, aCall());
  const fault: Bench["fault"] = (what, where = {}) => site.addFault({ device: device.id, fault: what, ...where });
  return { ...bench, device, reached, calls, read, fault };
}

const signIns = ({ calls }: Bench) =>
  calls.filter(({ operation, left }) => operation === "redfish.sign_in" && left).length;
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as Error,
  );

describe("signing in", () => {
  test("happens once for many requests", async () => {
    const bench = await setUp();
    for (let count = 0; count < 5; count += 1) await bench.read();
    expect(signIns(bench)).toBe(1);
  });

  test("happens once for many requests that start together", { tags: "race" }, async () => {
    const bench = await setUp();
    await Promise.all(Array.from({ length: 8 }, () => bench.read()));
    expect(signIns(bench)).toBe(1);
  });

  test("by somebody else does not keep a caller who was told to stop", async () => {
    const bench = await setUp();
    await bench.fault({ type: "hang" }, { method: "POST", path: "/redfish/v1/SessionService/Sessions" });
    const [first, second] = [new AbortController(), new AbortController()];
    const ask = ({ signal }: AbortController) =>
      failureOf(bench.reached.provider.can.power.readPower(bench.target, aCall({ signal })));
    let isFirstAnswered = false;
    const asked = [ask(first).finally(() => (isFirstAnswered = true)), ask(second)];
    await vi.waitFor(async () => expect(await bench.requestsReceived()).toBe(2), { timeout: 20_000 });
    second.abort();
    expect(await asked[1]).toMatchObject({ disposition: "retry" });
    expect(isFirstAnswered).toBe(false);
    first.abort();
    await asked[0];
  });

  test("happens again when the session has ended, unseen by the caller", async () => {
    const bench = await setUp();
    await bench.read();
    await bench.fault({ type: "status", status: 401 }, { path: "/redfish/v1/Chassis", times: 1 });
    expect(await bench.read()).toBe("on");
    expect(signIns(bench)).toBe(2);
  });

  test("happens again for other credentials, and wrong ones are not carried by the session of right ones", async () => {
    const bench = await setUp();
    await bench.read();
    const wrong: BmcTarget = { ...bench.target, password: "wrong" };
    await expect(bench.reached.provider.can.power.readPower(wrong, aCall())).rejects.toMatchObject({
      family: "keeps_out",
    });
    expect(await bench.read()).toBe("on");
  });

  test.each([404, 405, 501, 503])("goes on with Basic where sessions are answered with %i", async (status) => {
    const bench = await setUp();
    await bench.fault({ type: "status", status }, { method: "POST", path: "/redfish/v1/SessionService/Sessions" });
    expect(await bench.read()).toBe("on");
    expect(await bench.read()).toBe("on");
    expect(signIns(bench)).toBe(1);
  });

  const SESSIONS = { method: "POST", path: "/redfish/v1/SessionService/Sessions" };

  test("goes back to sessions where there was none to be had for a while", async () => {
    let jumped = 0;
    const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + jumped };
    const bench = await setUp({ provider: { clock } });
    await bench.fault({ type: "status", status: 503 }, { ...SESSIONS, times: 1 });
    expect(await bench.read()).toBe("on");
    jumped = minutes(2);
    expect(await bench.read()).toBe("on");
    expect(await bench.read()).toBe("on");
    expect(signIns(bench)).toBe(2);
  });

  test("goes back to sessions at once where a BMC that had none to give takes no Basic", async () => {
    const bench = await setUp();
    await bench.fault({ type: "status", status: 503 }, { ...SESSIONS, times: 3 });
    await bench.fault({ type: "status", status: 401 }, { path: "/redfish/v1/Chassis", times: 1 });
    for (let count = 0; count < 3; count += 1) {
      expect(await failureOf(bench.read())).toMatchObject({ disposition: "retry", family: "busy" });
    }
    expect(await bench.read()).toBe("on");
    expect(signIns(bench)).toBe(4);
  });

  test("is undone on close: the BMC has no session of ours left", async () => {
    const bench = await setUp();
    const { target } = bench;
    await bench.read();
    const gateway = createBmcGateway();
    const client = createRedfishClient({ gateway });
    const sessions = async () =>
      (await client.get(target, "/redfish/v1/SessionService/Sessions", aCall())).resource["Members@odata.count"];
    expect(await sessions()).toBe(2);
    await bench.reached.close();
    expect(await sessions()).toBe(1);
    await client.close();
  });

  test("is undone once, however often it is closed", async () => {
    const bench = await setUp();
    await bench.read();
    await bench.reached.close();
    await bench.reached.close();
    await bench.reached.provider.close();
    expect(bench.calls.filter(({ operation }) => operation === "redfish.sign_out")).toHaveLength(1);
  });

  test("with wrong credentials never locks the account, however often it is asked", async () => {
    const bench = await setUp();
    const wrong: BmcTarget = { ...bench.target, password: "wrong" };
    const ask = () => failureOf(bench.reached.provider.can.inventory.identify(wrong, aCall()));
    const failures = [
      ...(await Promise.all([ask(), ask(), ask(), ask()])),
      ...(await Promise.all(Array.from({ length: 16 }, ask))),
    ];
    expect(failures.every((failure) => failure?.message.startsWith("wrong credentials"))).toBe(true);
    expect(failures.at(-1)?.message).toContain("so that the account is not locked");
    expect(signIns(bench)).toBe(2);
    expect(await bench.read()).toBe("on");
  });
});

describe("commands whose answer is lost", () => {
  test.each(["drop", "hang", "garbage"])("by %s are not sent again while they may still show", async (type) => {
    const bench = await setUp({ provider: { requestTimeout: milliseconds(1_000) } });
    const { power } = bench.reached.provider.can;
    await bench.read();
    await bench.fault({ type, when: "after" }, { method: "POST", path: "*/Actions/*", times: 1 });
    await expect(power.setPower(bench.target, "off", aCall())).rejects.toMatchObject({ disposition: "retry" });
    await power.setPower(bench.target, "off", aCall());
    await vi.waitFor(async () => expect(await bench.read()).toBe("off"), { timeout: 20_000, interval: 20 });
    await power.setPower(bench.target, "off", aCall());
    expect(await bench.commandsAccepted()).toBe(1);
  });

  test("before they arrived are sent again after a while", async () => {
    const bench = await setUp({ provider: { lostCommandSettles: milliseconds(50) } });
    const { power } = bench.reached.provider.can;
    await bench.fault({ type: "drop" }, { method: "POST", path: "*/Actions/*", times: 1 });
    await expect(power.setPower(bench.target, "off", aCall())).rejects.toMatchObject({ family: "silent" });
    await vi.waitFor(
      async () => {
        await power.setPower(bench.target, "off", aCall());
        expect(await bench.read()).toBe("off");
      },
      { timeout: 20_000, interval: 20 },
    );
    expect(await bench.commandsAccepted()).toBe(1);
  });

  test("a command that was accepted and never carried out is sent again once it should have shown", async () => {
    const bench = await setUp({ provider: { commandSettles: milliseconds(100) } });
    const { power } = bench.reached.provider.can;
    await bench.fault({ type: "lie_accept" }, { times: 1 });
    await vi.waitFor(
      async () => {
        await power.setPower(bench.target, "off", aCall());
        expect(await bench.read()).toBe("off");
      },
      { timeout: 20_000, interval: 20 },
    );
    expect(await bench.commandsAccepted()).toBe(2);
  });

  test("a command that another process sent is not sent again while it may still show, and is afterwards", async () => {
    const [first, second] = [await setUp(), reach({ provider: { commandSettles: seconds(60) } })];
    open.push(second);
    await first.fault({ type: "lie_accept" });
    const set = ({ provider }: Reach, told?: { at: Date }) =>
      provider.can.power.setPower(first.target, "off", aCall(), told);
    expect(await set(first.reached)).toEqual({ commanded: true });
    const told = { at: new Date() };
    expect(await set(first.reached)).toEqual({ commanded: false });
    expect(await set(second, told)).toEqual({ commanded: false });
    expect(await first.commandsAccepted()).toBe(1);
    expect(await set(second, { at: new Date(Date.now() - 60_000) })).toEqual({ commanded: true });
    expect(await first.commandsAccepted()).toBe(2);
  });

  test("a command that is refused is a failure for good, in the device's own words", async () => {
    const bench = await setUp();
    const body = { error: { "@Message.ExtendedInfo": [{ Message: "Locked by the front panel." }] } };
    await bench.fault({ type: "status", status: 409, body }, { method: "POST", path: "*/Actions/*" });
    await expect(bench.reached.provider.can.power.setPower(bench.target, "off", aCall())).rejects.toMatchObject({
      disposition: "fail",
      family: "declines",
      message: expect.stringContaining("Locked by the front panel."),
    });
  });
});

describe("a BMC in trouble", () => {
  test("that is slow is waited for", async () => {
    const bench = await setUp();
    await bench.fault({ type: "latency", ms: 100 });
    expect(await bench.read()).toBe("on");
  });

  test("that says when to come back is quoted", async () => {
    const bench = await setUp();
    await bench.fault({ type: "status", status: 503, headers: { "Retry-After": "7" } });
    await expect(bench.read()).rejects.toMatchObject({ disposition: "retry", family: "busy", retryAfterMs: 7_000 });
  });

  test("that comes and goes is read in the end, without being hammered", async () => {
    const bench = await setUp({
      gateway: { failuresToOpen: 2, openFor: milliseconds(50), openForMax: milliseconds(50) },
    });
    await bench.fault({ type: "flap", up_ms: 600, down_ms: 400 });
    const seen: unknown[] = [];
    await vi.waitFor(
      async () => {
        seen.push(await bench.read().catch(() => "down"));
        expect(seen).toContain("down");
        expect(seen.at(-1)).toBe("on");
      },
      { timeout: 50_000, interval: 5 },
    );
    const refused = bench.calls.filter(({ left }) => !left).length;
    expect(refused).toBeGreaterThan(0);
  });

  test("that cuts every connection is soon no longer asked, and asked again later", async () => {
    let jumped = 0;
    const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + jumped };
    const bench = await setUp({ gateway: { openFor: minutes(5), openForMax: minutes(5), clock } });
    await bench.fault({ type: "drop" });
    const messages = new Set<string | undefined>();
    for (let count = 0; count < 6; count += 1) messages.add((await failureOf(bench.read()))?.message);
    expect(bench.reached.gateway.status(bench.target)?.breaker).toBe("open");
    const before = await bench.requestsReceived();
    messages.add((await failureOf(bench.read()))?.message);
    expect(await bench.requestsReceived()).toBe(before);
    expect([...messages]).toEqual([expect.stringContaining("cannot be reached")]); // the same each time: nothing new to tell
    await site.clearFaults();
    jumped = minutes(6);
    expect(await bench.read()).toBe("on");
  });

  test("does not slow its neighbours", async () => {
    const bench = await setUp({ provider: { requestTimeout: seconds(60) } });
    const neighbour = devices[next++ % devices.length];
    if (neighbour === undefined) throw new Error("the site is empty");
    const target = await site.target(neighbour);
    await bench.fault({ type: "hang" });
    const stop = new AbortController();
    let answered = 0;
    const stuck = Array.from({ length: 20 }, () =>
      failureOf(bench.reached.provider.can.power.readPower(bench.target, aCall({ signal: stop.signal }))).finally(
        () => (answered += 1),
      ),
    );
    await bench.reached.provider.can.inventory.readInventory(target, aCall());
    expect(answered).toBe(0);
    stop.abort();
    await Promise.all(stuck);
  });

  test("that answers for another shelf is told by its serial", async () => {
    const bench = await setUp();
    await bench.fault({ type: "wrong_serial", serial: "SOMEBODY-ELSE" });
    const identity = await bench.reached.provider.can.inventory.identify(bench.target, aCall());
    expect(identity.serial).toBe("SOMEBODY-ELSE");
  });

  test("never brings the password into a message", async () => {
    const bench = await setUp({ provider: { requestTimeout: milliseconds(300) } });
    const body = { error: { message: `rejected ${bench.target.password}` } };
    const { inventory: inspect } = bench.reached.provider.can;
    const messages: string[] = [];
    for (const fault of [
      { type: "status", status: 500, body },
      { type: "status", status: 400, body },
      { type: "status", status: 401, body },
      { type: "drop" },
      { type: "hang" },
      { type: "garbage" },
      { type: "wrong_credentials" },
    ]) {
      await bench.fault(fault);
      const failure = await failureOf(inspect.identify(bench.target, aCall()));
      messages.push(`${failure?.message} ${failure?.stack} ${JSON.stringify(failure)} ${String(failure?.cause)}`);
      await site.clearFaults();
    }
    expect(messages).toHaveLength(7);
    expect(messages.join("\n")).not.toContain(bench.target.password);
    expect(messages.join("\n")).not.toContain(
      Buffer.from(`${bench.target.username}:${bench.target.password}`).toString("base64"),
    );
  });
});
