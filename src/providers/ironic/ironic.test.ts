import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { aCall } from "../../capabilities/conformance/device-bench.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { type BmcGateway, createBmcGateway } from "../transport/bmc-gateway.ts";
import { createIronicProvider, type IronicProvider } from "./ironic-provider.ts";
import { chooseMicroversion } from "./microversion.ts";

/**
 * What no real Ironic can be made to do at will: locks that last, versions that change, answers that make no sense. All else is
 * proved against the real one (test/integration/providers/ironic.test.ts).
 */
interface Asked {
  readonly line: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}
type Reply = { readonly status: number; readonly body?: unknown; readonly text?: string };

let asked: Asked[];
let newest: string;
let replies: Record<string, Reply | readonly Reply[]>;
let server: Server;
let gateway: BmcGateway;
let provider: IronicProvider;
let target: BmcTarget;

const aNode = {
  uuid: "0d9b5d5e-4e0c-4a5c-8a6b-1f7c5a1e2f30",
  power_state: "power on",
  target_power_state: null,
  provision_state: "active",
  provision_updated_at: "t1",
  deploy_interface: "ramdisk",
  last_error: null,
  driver_internal_info: {},
  maintenance: false,
  maintenance_reason: null,
  fault: null,
  properties: {},
  instance_info: {},
};
const POWER = "PUT /v1/nodes/n1/states/power";
const NODE = "GET /v1/nodes/n1";
const ok = (body: unknown): Reply => ({ status: 200, body });
const faulty = (status: number, faultstring: string): Reply => ({
  status,
  body: { error_message: JSON.stringify({ faultcode: "Client", faultstring, debuginfo: null }) },
});
const lines = () => asked.map(({ line }) => line);
const commands = () => lines().filter((line) => !line.startsWith("GET"));

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
}

function replyTo(line: string): Reply {
  if (line === "GET /") return ok({ default_version: { id: "v1", min_version: "1.1", version: newest } });
  const reply = replies[line];
  if (!Array.isArray(reply)) return (reply as Reply | undefined) ?? (line === NODE ? ok(aNode) : { status: 202 });
  return (reply.length > 1 ? reply.shift() : reply[0]) ?? { status: 202 };
}

beforeEach(async () => {
  asked = [];
  newest = "1.82";
  replies = {};
  server = createServer(async (request, response) => {
    const line = `${request.method} ${request.url?.split("?")[0]}`;
    asked.push({ line, headers: request.headers, body: await readBody(request) });
    const { status, body, text = body === undefined ? "" : JSON.stringify(body) } = replyTo(line);
    response.writeHead(status, { "content-type": "application/json" }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  gateway = createBmcGateway({ backOff: milliseconds(1) });
  provider = createIronicProvider({
    gateway,
    lockedPause: { first: milliseconds(1), most: milliseconds(2) },
  });
  const path = "/v1/nodes/n1";
  target = {
    address: "127.0.0.1",
    port,
    scheme: "http",
    username: "none",
    password: "none",
    trust: { mode: "off" },
    path,
  };
});
afterEach(async () => {
  provider.close();
  gateway.close();
  await new Promise((resolve) => server.close(resolve));
});

const off = () => provider.can.power.setPower(target, "off", aCall());

describe("a node that a conductor holds", () => {
  const locked = faulty(409, "Node n1 is locked by host c1, please retry after the current operation is completed.");

  test("is asked again until it is let go", async () => {
    replies[POWER] = [locked, locked, { status: 202 }];
    expect(await off()).toEqual({ commanded: true });
    expect(commands()).toEqual([POWER, POWER, POWER]);
  });

  test("that is not let go fails with Ironic's words, to be tried again later", async () => {
    replies[POWER] = locked;
    await expect(off()).rejects.toMatchObject({
      disposition: "retry",
      family: "busy",
      message: expect.stringContaining("Node n1 is locked by host c1"),
    });
    expect(commands()).toHaveLength(5);
  });

  test("is not waited for by whoever is told to stop", async () => {
    replies[NODE] = locked;
    const stop = new AbortController();
    const reading = provider.can.power.readPower(target, aCall({ signal: stop.signal }));
    stop.abort();
    await expect(reading).rejects.toThrow("was stopped");
  });
});

describe("versions", () => {
  test("the newest that both know is asked for, found out once", async () => {
    newest = "1.200";
    await off();
    expect(lines().filter((line) => line === "GET /")).toHaveLength(1);
    expect(asked[1]?.headers["x-openstack-ironic-api-version"]).toBe("1.89");
  });

  test("are found out again when an older service stands there", async () => {
    await off();
    newest = "1.60";
    replies[NODE] = [faulty(406, "Version 1.82 was requested but is not supported"), ok(aNode)];
    await provider.can.power.readPower(target, aCall());
    expect(asked.at(-1)?.headers["x-openstack-ironic-api-version"]).toBe("1.60");
  });

  test.each([
    [{}, "is it Ironic?"],
    [{ default_version: { version: "1.31", min_version: "1.1" } }, "speaks versions 1.1 to 1.31"],
    [{ default_version: { version: "1.300", min_version: "1.250" } }, "speaks versions 1.250 to 1.300"],
  ])("that do not meet are refused: %j", (root, message) => {
    expect(() => chooseMicroversion(root, "Ironic here")).toThrow(message);
  });
});

describe("the medium of an installation that is over", () => {
  const PASSTHRU = "/v1/nodes/n1/vendor_passthru";
  const EJECT = "DELETE /v1/nodes/n1/vmedia";
  const FROM_DISK = "PUT /v1/nodes/n1/management/boot_device";
  const PATCH = "PATCH /v1/nodes/n1";
  const cleanUp = () =>
    provider.can.imaging.cleanUp(
      target,
      { location: "https://images.example/a.iso", cloudInitRef: "", token: "t" },
      aCall(),
    );
  beforeEach(() => {
    const instance_info = { millwright: { order: "t", since: "t0" }, boot_iso: "https://images.example/a.iso?token=t" };
    replies[NODE] = ok({ ...aNode, instance_info });
    replies["GET /v1/nodes/n1/management/boot_device"] = ok({ boot_device: "cdrom", persistent: true });
  });

  test("is ejected where the API has a word for it", async () => {
    newest = "1.89";
    await cleanUp();
    expect(commands()).toEqual([FROM_DISK, EJECT, PATCH]);
  });

  test("is ejected by what the driver offers where the API has none", async () => {
    replies[`GET ${PASSTHRU}/methods`] = ok({ eject_vmedia: { http_methods: ["POST"] } });
    await cleanUp();
    expect(commands()).toEqual([FROM_DISK, `POST ${PASSTHRU}/eject_vmedia`, PATCH]);
  });

  test("stays in the drive where neither is there", async () => {
    replies[`GET ${PASSTHRU}/methods`] = ok({});
    await cleanUp();
    expect(commands()).toEqual([FROM_DISK, PATCH]);
  });

  test("keeps nothing undone where a driver declines, since that has no such drive", async () => {
    newest = "1.89";
    replies[EJECT] = faulty(400, "Driver does not support attach_virtual_media");
    await cleanUp();
    expect(commands()).toEqual([FROM_DISK, EJECT, PATCH]);
  });

  test("is forgotten by Ironic, which would put it in again when another conductor takes the node over", async () => {
    replies[`GET ${PASSTHRU}/methods`] = ok({});
    await cleanUp();
    expect(asked.at(-1)?.body).toEqual([
      { op: "remove", path: "/instance_info/boot_iso" },
      { op: "remove", path: "/instance_info/millwright" },
    ]);
  });
});

describe("the boot device", () => {
  const BOOT = "/v1/nodes/n1/management/boot_device";

  test.each([
    [
      { boot_device: "pxe", persistent: false },
      { source: "pxe", lasts: "once" },
    ],
    [
      { boot_device: "cdrom", persistent: true },
      { source: "cd", lasts: "always" },
    ],
    [
      { boot_device: "safe", persistent: true },
      { source: "other", lasts: "always" },
    ],
    [
      { boot_device: null, persistent: null },
      { source: "none", lasts: "once" },
    ],
    [
      { boot_device: "pxe", persistent: null },
      { source: "none", lasts: "once" },
    ],
  ])("%j is %j", async (told, override) => {
    replies[`GET ${BOOT}`] = ok(told);
    expect(await provider.can.boot.readBootOverride(target, aCall())).toEqual(override);
  });

  test("that the driver does not know is refused for good, and not sent", async () => {
    replies[`GET ${BOOT}`] = ok({ boot_device: null, persistent: null });
    replies[`GET ${BOOT}/supported`] = ok({ supported_boot_devices: ["pxe", "disk"] });
    await expect(provider.can.boot.setBootOverride(target, "http", aCall())).rejects.toMatchObject({
      disposition: "fail",
      family: "declines",
      message: expect.stringContaining("cannot be booted from uefihttp: its driver in Ironic knows pxe, disk"),
    });
    expect(commands()).toEqual([]);
  });
});

describe("signing in", () => {
  test("nothing is sent to an Ironic that asks nobody", async () => {
    await off();
    expect(asked.some(({ headers }) => headers.authorization ?? headers["x-auth-token"])).toBe(false);
  });

  test("a token goes where Keystone's go, and never into a message", async () => {
    target = { ...target, username: "token", password: "gAAAAA-secret" };
    replies[NODE] = faulty(401, "The request with gAAAAA-secret was not authorised");
    const failure: unknown = await provider.can.power.readPower(target, aCall()).catch((error: unknown) => error);
    expect(asked.at(-1)?.headers["x-auth-token"]).toBe("gAAAAA-secret");
    expect(failure).toMatchObject({ disposition: "fail", family: "keeps_out" });
    expect(String(failure)).not.toContain("gAAAAA");
  });
});

describe("what Ironic says", () => {
  test.each([
    [
      { status: 400, body: { error_message: { faultstring: "no such state" } } },
      "fail",
      "refused_by_device",
      "no such state",
    ],
    [{ status: 400, body: { error_message: "plain words" } }, "fail", "refused_by_device", "plain words"],
    [{ status: 502, text: "<html>Bad gateway</html>" }, "retry", "busy", "Bad gateway"],
    [{ status: 200, text: "<html>Welcome</html>" }, "retry", "protocol", "not a JSON object"],
    [{ status: 200, body: { hello: "world" } }, "retry", "protocol", "not that of a node"],
    [{ status: 302, text: "" }, "fail", "protocol", "redirect"],
    [faulty(404, "Node n1 could not be found."), "fail", "not_found_there", "Node n1 could not be found."],
  ] as const)("%j fails with %s and %s", async (reply, disposition, code, words) => {
    replies[NODE] = reply;
    await expect(provider.can.power.readPower(target, aCall())).rejects.toMatchObject({
      disposition,
      code,
      message: expect.stringContaining(words),
    });
  });

  test.each([
    [{ power_state: "power on" }, "on"],
    [{ power_state: "power off" }, "off"],
    [{ power_state: "power on", target_power_state: "soft power off" }, "powering_off"],
    [{ power_state: "power on", target_power_state: "rebooting" }, "powering_on"],
    [{ power_state: "error" }, "unknown"],
    [{ power_state: null }, "unknown"],
  ])("%j is %s", async (told, power) => {
    replies[NODE] = ok({ ...aNode, ...told });
    expect(await provider.can.power.readPower(target, aCall())).toBe(power);
  });

  test("of a command that it accepted and could not carry out is told to whoever looks next", async () => {
    await off();
    replies[NODE] = ok({ ...aNode, last_error: "Failed to change power state: the BMC is silent" });
    await expect(provider.can.power.readPower(target, aCall())).rejects.toMatchObject({
      disposition: "retry",
      family: "declines",
      message: expect.stringContaining("the BMC is silent"),
    });
  });

  test("of an older failure is not taken for that of the command", async () => {
    replies[NODE] = ok({ ...aNode, last_error: "an old story" });
    await off();
    expect(await provider.can.power.readPower(target, aCall())).toBe("on");
  });

  test("of a fault that it found itself is worth another try", async () => {
    const reason = "During sync_power_state, max retries exceeded";
    replies[NODE] = ok({ ...aNode, maintenance: true, maintenance_reason: reason, fault: "power failure" });
    await expect(off()).rejects.toMatchObject({
      disposition: "retry",
      message: expect.stringContaining(`because of a fault (power failure): ${reason}`),
    });
    expect(commands()).toEqual([]);
  });
});

test("an installation that Ironic gave up says what Ironic says", async () => {
  const order = { location: "https://images.example/a.iso", cloudInitRef: "", token: "t" };
  replies[NODE] = ok({
    ...aNode,
    provision_state: "deploy failed",
    provision_updated_at: "t2",
    last_error: "Deploy step deploy.deploy failed",
    instance_info: { millwright: { order: "t", since: "t1" } },
  });
  await expect(provider.can.imaging.readProgress(target, order, aCall())).rejects.toMatchObject({
    disposition: "retry",
    message: expect.stringContaining("Deploy step deploy.deploy failed"),
  });
});

test("a machine whose endpoint names no node is told which address it needs", async () => {
  const { path: _, ...without } = target;
  await expect(provider.can.power.readPower(without, aCall())).rejects.toThrow("/v1/nodes/NODE");
  expect(asked).toEqual([]);
});
