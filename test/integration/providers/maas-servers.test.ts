import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { observedStateOf } from "../../../src/capabilities/fleet/maas-machine.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** What real regions do differently from the simulated one, each answer written down as they give it. */
interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** In the place of a body: what is written piece by piece. */
  readonly pieces?: () => Iterable<string>;
}

let region: Server;
let target: MaasTarget;
let answers: Reply[] = [];
let asked: { readonly method: string | undefined; readonly url: string | undefined }[] = [];
let maas = createMaas({ gateway: createBmcGateway() });

beforeAll(async () => {
  region = createServer((request: IncomingMessage, response) => {
    const { method, url } = request;
    asked.push({ method, url });
    const {
      status = 200,
      headers = {},
      body,
      pieces,
    } = answers.shift() ?? { status: 500, body: "nobody said what to answer" };
    if (pieces) {
      response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
      Readable.from(pieces()).pipe(response);
      return;
    }
    const isText = body === undefined || typeof body === "string";
    const type = isText ? "text/plain; charset=utf-8" : "application/json; charset=utf-8";
    response.writeHead(status, { "content-type": type, vary: "Cookie", "x-maas-hash": "9f2c", ...headers });
    response.end(isText ? (body ?? "") : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => region.listen(0, "127.0.0.1", resolve));
  const { port } = region.address() as AddressInfo;
  const place = { address: "127.0.0.1", port, scheme: "http" as const, trust: { mode: "off" as const } };
  target = { ...place, path: "/MAAS", apiKey: "consumer:token:secret" };
});
afterAll(async () => {
  maas.close();
  region.closeAllConnections();
  await new Promise((resolve) => region.close(resolve));
});

/** What one test had refused is not held against the next. */
function answering(...replies: Reply[]): void {
  maas.close();
  maas = createMaas({ gateway: createBmcGateway() });
  answers = replies;
  asked = [];
}

const machine = (more: object = {}) => ({ system_id: "abc123", status: 4, status_name: "Ready", ...more });
const order = { userData: "", distroSeries: "jammy", hardwareSync: true, comment: "" };

test("a listing of more than 64 MiB is read while it comes, machine by machine", async () => {
  const count = 7_000;
  // As a server with many ports and disks is listed.
  const ballast = `{"name":"nvme","tags":["[","]"],"id_path":"/dev/\\"${"x".repeat(500)}"}`;
  const rest = `"physicalblockdevice_set":[${Array(20).fill(ballast).join()}]`;
  function* pieces() {
    for (let at = 0; at < count; at += 1)
      yield `${at === 0 ? "[" : ","}{"system_id":"m${at}","status":6,"status_name":"Deployed",${rest}}`;
    yield "]";
  }
  answering({ pieces });
  const machines = await maas.listMachines(target, {}, aCall());
  expect(Buffer.byteLength(rest) * count).toBeGreaterThan(64 * 1_024 * 1_024);
  expect(new Set(machines.map(({ systemId }) => systemId)).size).toBe(count);
  expect(machines.at(-1)).toMatchObject({ systemId: `m${count - 1}`, status: 6 });
});

test.each([
  ["a listing that breaks off", '[{"system_id":"a","status":6},{"system_id":"b"', "is not a list: the list is cut off"],
  ["another page in its place", "<html><body>Sign in</body></html>", "is not a list: it begins otherwise"],
])("%s is no list of machines", async (_what, body, words) => {
  answering({ body });
  const failed = await maas.listMachines(target, {}, aCall()).catch((error: unknown) => error as Error);
  expect(failed).toMatchObject({ code: "protocol", message: expect.stringContaining(words) });
});

test.each([
  [409, "Can't deploy a machine that is in the 'Broken' state", "refused_by_device"],
  [400, { distro_series: ["'warty' is not a valid distro_series."], __all__: ["No boot image."] }, "refused_by_device"],
  [400, "Failed to render preseed: no such template", "refused_by_device"],
  [401, "Authorization Error: Invalid API key.", "credentials_rejected"],
  [403, "You do not have the required permission.", "forbidden"],
  [503, "No more IPs available on subnet 10.0.0.0/24", "busy"],
  [502, "<html><head><title>502 Bad Gateway</title></head></html>", "busy"],
] as const)("status %s with %j in its own words is %s, with those words", async (status, body, code) => {
  answering({ status, body });
  const refused = await maas.deploy(target, "abc123", order, aCall()).catch((error: unknown) => error as Error);
  expect(refused).toMatchObject({ code, status });
  const words = typeof body === "string" ? body.slice(0, 30) : "'warty' is not a valid distro_series.";
  expect((refused as Error).message).toContain(words);
});

test("a busy region says when to come back, and answers then", async () => {
  answering({ status: 503, headers: { "retry-after": "2" }, body: "The region controller is restarting." });
  await expect(maas.findMachine(target, "abc123", aCall())).rejects.toMatchObject({
    code: "busy",
    disposition: "retry",
    retryAfterMs: 2_000,
  });
  answering({ body: machine() });
  expect(await maas.findMachine(target, "abc123", aCall())).toMatchObject({ systemId: "abc123", status: 4 });
});

test("a command that is answered with nothing was taken: the machine is read after it", async () => {
  for (const empty of [{ status: 204 }, { body: null as unknown }, { body: "OK" }]) {
    answering(empty, { body: machine({ status: 0, status_name: "New" }) });
    expect(await maas.abort(target, "abc123", "", aCall())).toMatchObject({ status: 0 });
    expect(asked.map(({ method }) => method)).toEqual(["POST", "GET"]);
  }
});

test("a machine that is not there is no failure, also where the answer is a page", async () => {
  answering({ status: 404, body: "No Machine matches the given query." });
  expect(await maas.findMachine(target, "abc123", aCall())).toBeUndefined();
  answering({ status: 404, body: "<!doctype html><title>Not Found</title>" });
  expect(await maas.findMachine(target, "abc123", aCall())).toBeUndefined();
});

test("members that are new, missing, null or of another type are passed over, and the rest is read", async () => {
  answering({
    body: [
      machine({ numanode_set: [{ index: 0 }], virtualmachine_id: null, sriov: { vf: 8 }, hardware_info: "Unknown" }),
      machine({
        system_id: "b",
        interface_set: null,
        boot_interface: null,
        physicalblockdevice_set: [{ id: "1" }, null],
      }),
      machine({ system_id: "c", ip_addresses: ["10.0.0.1", 7], enable_hw_sync: true, last_sync: "today" }),
      { hostname: "a device, which has no status" },
      null,
    ],
  });
  const found = await maas.listMachines(target, {}, aCall());
  expect(found.map(({ systemId }) => systemId)).toEqual(["abc123", "b", "c"]);
  expect(found[0]).toMatchObject({ serial: null, power: "unknown", interfaces: [], hostname: "" });
  expect(found[1]).toMatchObject({ bootInterfaceId: null, disks: [] });
  expect(found[2]).toMatchObject({
    ipAddresses: ["10.0.0.1"],
    hardwareSync: { intervalSeconds: null, lastSyncAt: null },
  });
});

test("names of statuses differ between versions: the number counts, and one that nobody knows is nothing to build on", async () => {
  answering({
    body: [
      machine({ status: 13, status_name: "Releasing failed" }),
      machine({ status: 13, status_name: "Failed releasing" }),
      machine({ status: 99 }),
    ],
  });
  const found = await maas.listMachines(target, {}, aCall());
  expect(found.map(observedStateOf)).toEqual(["Failed", "Failed", "Other"]);
});

test("a region without images, rack controllers and subnets is empty, and no failure of the client", async () => {
  answering({ body: [] }, { body: [] }, { body: [{ id: 1, cidr: "10.0.0.0/24", vlan: "a text" }, { id: 2 }] });
  expect(await maas.listImages(target, aCall())).toEqual([]);
  expect(await maas.listRackControllers(target, aCall())).toEqual([]);
  expect(await maas.listSubnets(target, aCall())).toEqual([{ id: 1, cidr: "10.0.0.0/24", hasDhcp: false }]);
});

test("another page in place of MAAS is not taken for an empty region", async () => {
  answering({ body: "<html>Sign in to the guest network</html>" }, { body: { machines: [] } });
  for (let time = 0; time < 2; time += 1)
    await expect(maas.listMachines(target, {}, aCall())).rejects.toMatchObject({ code: "protocol" });
});

test.each<Reply>([
  { status: 404, body: "Not Found" },
  { status: 400, body: "Unrecognised signature: method=GET op=by_unknown_mac" },
  { status: 410, body: "Gone" },
])("a region that does not tell whom it has seen on its networks has seen nobody: $status", async (reply) => {
  answering(reply);
  expect(await maas.listNeighbours(target, aCall())).toEqual([]);
  expect(asked).toEqual([{ method: "GET", url: "/MAAS/api/2.0/discovery/?op=by_unknown_mac" }]);
});

test("neighbours are read with what is known of them; a page in place of the list is none of them", async () => {
  answering({
    body: [
      {
        ip: "10.0.0.17",
        mac_address: "AA:00:00:00:00:01",
        mac_organization: "Dell Inc.",
        last_seen: "2026-11-18T08:00:00.123",
      },
      { ip: null, mac_address: "aa:00:00:00:00:02", mac_organization: null, hostname: "spine-1", observer: 7, new: {} },
      { ip: "10.0.0.18" },
      "nonsense",
    ],
  });
  expect(await maas.listNeighbours(target, aCall())).toEqual([
    {
      ...{ mac: "aa:00:00:00:00:01", ip: "10.0.0.17", hostname: null, vendor: "Dell Inc." },
      lastSeenAt: new Date("2026-11-18T08:00:00.123Z"),
    },
    { mac: "aa:00:00:00:00:02", ip: null, hostname: "spine-1", vendor: null, lastSeenAt: null },
  ]);
  answering({ body: "<html>" });
  await expect(maas.listNeighbours(target, aCall())).rejects.toThrow("something that is not a list");
});
