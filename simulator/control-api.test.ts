import { request } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type InventoryRow, startTemporarySimulator } from "./testing/temporary-simulator.ts";

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
/** Any characters; the arbitrary of all of Unicode takes seconds to build. */
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array).toString("latin1"));
const reports: string[] = [];

beforeAll(async () => {
  site = await startTemporarySimulator({ log: (line) => reports.push(line) });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  expect(reports).toEqual([]);
});

describe("control API", () => {
  test("lists every device with the truth about it", async () => {
    const { body: devices } = await site.control<Record<string, unknown>[]>("GET", "/devices?kind=power_shelf");
    expect(devices).toHaveLength(16);
    expect(devices[0]).toMatchObject({
      id: "rack-1-shelf-1",
      kind: "power_shelf",
      rack: "rack-1",
      address: "127.64.1.1",
      port: site.simulator.redfishPort,
      layout: "liteon",
      power: "on",
      reported_power: "on",
      meter: { output_watts: expect.any(Number), output_volts: expect.any(Number) },
    });
    expect(devices[0]?.psus).toHaveLength(6);
  });

  test("lists shelves, switches and machines, or one kind alone", async () => {
    const ids = async (query: string) =>
      (await site.control<{ id: string }[]>("GET", `/devices${query}`)).body.map(({ id }) => id);
    const all = await ids("");
    const kinds = ["power_shelf", "switch", "machine"].map((kind) => ids(`?kind=${kind}`));
    expect(all).toEqual((await Promise.all(kinds)).flat());
    expect(all).toHaveLength(16 + 18 + 36);
    const { body } = await site.control<{ error: { field: string } }>("GET", "/devices?kind=toaster");
    expect(body.error.field).toBe("kind");
  });

  test("shows machines with what runs on them, and how to reach them in their inventory", async () => {
    const { body: device } = await site.control("GET", "/devices/m-rack1-01");
    expect(device).toMatchObject({
      kind: "machine",
      address: "127.65.1.1",
      ssh_address: "127.66.1.1",
      power: "on",
      os: { up: true, image: "ubuntu:22.04-k8s", boot_id: expect.any(String), installing: null },
      kubernetes: { cluster: null },
      effects: { resets: 0, boots: 0, installs: 0, joins: 0, media_inserts: 0 },
    });
    const { body: rows } = await site.control<Record<string, unknown>[]>("GET", "/inventory/machines");
    expect(rows).toHaveLength(36);
    expect(rows[0]).toMatchObject({
      machine_id: "m-rack1-01",
      bmc_endpoint: `127.65.1.1:${site.simulator.redfishPort}`,
      ssh_endpoint: `127.66.1.1:${site.simulator.sshPort}`,
      ssh_private_key: expect.stringContaining("OPENSSH PRIVATE KEY"),
    });
    const text = JSON.stringify((await site.control("GET", "/devices")).body);
    for (const { bmc_password, ssh_password } of rows) {
      expect(text).not.toContain(bmc_password);
      expect(text).not.toContain(ssh_password);
    }
  });

  test("a machine can be crashed once, and not while nothing runs on it", async () => {
    expect((await site.control("POST", "/devices/m-rack2-18/crash")).body).toMatchObject({
      os: { up: false, hung: "kernel_panic" },
    });
    expect((await site.control("POST", "/devices/m-rack2-18/crash")).status).toBe(409);
    expect((await site.control("POST", "/devices/rack-1-shelf-1/crash")).status).toBe(404);
  });

  test("the built-in plans' images, profile and clusters are there", async () => {
    expect((await site.control("GET", "/images")).body).toMatchObject([
      { ref: "ubuntu:22.04-k8s", digest: expect.stringMatching(/^sha256:/), pxe_profiles: ["pxe-ubuntu-22.04"] },
      { ref: "ubuntu-22.04", digest: expect.stringMatching(/^sha256:/) },
    ]);
    const { body } = await site.control<{ served_at: string }[]>("GET", "/images");
    for (const { served_at } of body) expect((await fetch(served_at)).status).toBe(200);
    expect((await site.control("GET", "/images/none.iso")).status).toBe(404);
    expect((await site.control("GET", "/clusters")).body).toMatchObject([
      { name: "default-cluster", nodes: [] },
      { name: "cluster-a", nodes: [] },
    ]);
  });

  test("shows no password but in the inventory, whose rows are ready to be registered", async () => {
    const { body: rows } = await site.control<InventoryRow[]>("GET", "/inventory");
    expect(rows[0]).toMatchObject({
      bmc_ip_address: `127.64.1.1:${site.simulator.redfishPort}`,
      rack_id: "rack-1",
      metadata: { name: "rack-1-shelf-1" },
    });
    const { body: devices } = await site.control("GET", "/devices");
    const text = JSON.stringify(devices);
    for (const { bmc_password } of rows) expect(text).not.toContain(bmc_password);
  });

  test("the whole site is one file, with a way in to every device", async () => {
    type Entry = Readonly<Record<string, string>>;
    const { body } = await site.control<Readonly<Record<string, readonly Entry[]>>>("GET", "/inventory/site");
    expect(Object.entries(body).map(([list, entries]) => [list, entries.length])).toEqual([
      ["rack_profiles", 2],
      ["expected_racks", 2],
      ["expected_power_shelves", 16],
      ["expected_switches", 18],
      ["machines", 36],
    ]);
    const profiles = body.rack_profiles?.map(({ name }) => name);
    expect(body.expected_racks?.map(({ rack_profile_id }) => rack_profile_id)).toEqual(profiles);
    const { body: rows } = await site.control<Entry[]>("GET", "/inventory/machines");
    expect(body.machines?.map(({ bmc_password }) => bmc_password)).toEqual(
      rows.map(({ bmc_password }) => bmc_password),
    );
  });

  test("the switch at the rack changes the power at once and is no command", async () => {
    expect((await site.control("POST", "/devices/rack-1-shelf-1/power", { power: "off" })).body).toMatchObject({
      power: "off",
    });
    const { body } = await site.control("GET", "/devices/rack-1-shelf-1");
    expect(body).toMatchObject({ power: "off", effects: { power_off_commands: 0, power_changes: 1 }, requests: 0 });
  });

  test("faults are set, listed with their counts, and removed", async () => {
    const created = await site.control<{ id: string }>("POST", "/faults", {
      device: "rack-1-*",
      fault: { type: "hang" },
      times: 2,
    });
    expect(created.status).toBe(201);
    expect((await site.control("GET", "/faults")).body).toMatchObject([
      { id: created.body.id, device: "rack-1-*", seen: 0, applied: 0 },
    ]);
    expect((await site.control("DELETE", `/faults/${created.body.id}`)).status).toBe(204);
    expect((await site.control("DELETE", `/faults/${created.body.id}`)).status).toBe(404);
    expect((await site.control("GET", "/faults")).body).toEqual([]);
  });

  test("the speed can be changed", async () => {
    expect((await site.control("PUT", "/speed", { speed: 50 })).status).toBe(200);
    expect((await site.control("GET", "/speed")).body).toEqual({ speed: 50 });
  });

  test.each([
    ["POST", "/faults", {}, "device"],
    ["POST", "/faults", { device: "nobody", fault: { type: "drop" } }, "device"],
    ["POST", "/faults", { device: "*", fault: { type: "explode" } }, "fault.type"],
    ["POST", "/faults", { device: "*", fault: { type: "latency" } }, "fault.ms"],
    ["POST", "/faults", { device: "*", fault: { type: "latency", ms: "5" } }, "fault.ms"],
    ["POST", "/faults", { device: "*", fault: { type: "status", status: 99 } }, "fault.status"],
    [
      "POST",
      "/faults",
      { device: "*", fault: { type: "status", status: 500, headers: { "X-A": "a\nb" } } },
      "fault.headers.X-A",
    ],
    ["POST", "/faults", { device: "*", fault: { type: "drop" }, times: 0 }, "times"],
    ["POST", "/faults", { device: "*", fault: { type: "drop" }, probability: 1.5 }, "probability"],
    ["POST", "/faults", { device: "*", fault: { type: "drop" }, tmies: 3 }, "tmies"],
    ["POST", "/devices/rack-1-shelf-2/power", { power: "maybe" }, "power"],
    ["POST", "/devices/m-rack1-01/join", { cluster: "nowhere" }, "cluster"],
    ["PUT", "/devices/m-rack1-01/netboot", { image: "windows:95" }, "image"],
    ["PUT", "/speed", { speed: 0 }, "speed"],
    ["PUT", "/speed", { speed: null }, "speed"],
  ])("%s %s with %j names the field that is wrong", async (method, path, body, field) => {
    const reply = await site.control<{ error: { field: string; message: string } }>(method, path, body);
    expect(reply.status).toBe(400);
    expect(reply.body.error.field).toBe(field);
    expect((await site.control("GET", "/faults")).body).toEqual([]);
  });

  test("what is not there, and what cannot be done to it, is said", async () => {
    expect((await site.control("GET", "/devices/nobody")).status).toBe(404);
    expect((await site.control("POST", "/devices/nobody/power", { power: "on" })).status).toBe(404);
    expect((await site.control("GET", "/nothing")).status).toBe(404);
    expect((await site.control("DELETE", "/devices")).status).toBe(405);
  });

  test.each([{ Origin: "http://example.test" }, { Host: "example.test:80" }])(
    "a web page gets nothing: %j",
    async (headers) => {
      const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
      request(`${site.simulator.controlUrl}/inventory`, { headers: { ...headers } }, (incoming) => {
        incoming.resume();
        resolve(incoming.statusCode);
      })
        .on("error", reject)
        .end();
      expect(await promise).toBe(403);
    },
  );

  test("no path, method or body brings it down", async () => {
    const call = fc.record({
      method: fc.constantFrom("POST", "PUT", "DELETE", "PATCH"),
      path: fc.oneof(
        fc.constantFrom("/faults", "/speed", "/devices/rack-1-shelf-2/power", "/devices/%zz", "/faults/x"),
        fc.stringMatching(/^\/[a-z%/]{0,20}$/),
      ),
      body: fc.oneof(
        fc.json(),
        bytes,
        fc.constant(
          `{"device":"*","fault":{"type":"status","status":500,"body":${"[".repeat(9_000)}${"]".repeat(9_000)}}}`,
        ),
      ),
    });
    await fc.assert(
      fc.asyncProperty(call, async ({ method, path, body }) => {
        const response = await fetch(site.simulator.controlUrl + path, { method, body });
        expect(response.status).toBeLessThan(500);
        await response.text();
      }),
      { numRuns: 30 },
    );
    expect((await site.control("GET", "/devices")).status).toBe(200);
  });
});
