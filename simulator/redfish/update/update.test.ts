import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RedfishCall, startTemporarySimulator } from "../../testing/temporary-simulator.ts";

const UPDATE = "/redfish/v1/UpdateService";
const NEIGHBOUR = "m-rack2-18";
const SHELF = "rack-1-shelf-1";
const MODEL = "GB-2U-96C";
/** A flash takes 300 ms. */
const SPEED = 2_000;

const imageOf = (component: string, version: string, model = MODEL): Buffer =>
  Buffer.concat([Buffer.from(`MILLWRIGHT-FW ${model} ${component} ${version}\n`), Buffer.alloc(100_000, component)]);

type Site = Awaited<ReturnType<typeof startTemporarySimulator>>;
interface Truth {
  readonly components: readonly { id: string; version: string | null; staged: string | null }[];
  readonly flashes: readonly { component: string; to: string; outcome: string; wrote: boolean; why: string | null }[];
  readonly effects: { readonly manager_restarts: number };
}

let site: Site;
let images: string;
const offered = new Map<string, Buffer>();
const server = createServer((request, response) => {
  const image = offered.get(request.url ?? "");
  response.writeHead(image === undefined ? 404 : 200).end(image);
});
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  images = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  site = await startTemporarySimulator({ site: "racks=2", speed: SPEED });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  server.close();
});

/** Each test has a machine of its own. */
let used = 0;
let machine = "";
beforeEach(() => {
  used += 1;
  machine = `m-rack${Math.ceil(used / 18)}-${String(1 + ((used - 1) % 18)).padStart(2, "0")}`;
});

const truthOf = async (device: string): Promise<Truth> => (await site.control<Truth>("GET", `/devices/${device}`)).body;
const versionOf = async (device: string, component: string): Promise<unknown> =>
  (await site.redfish(device, `${UPDATE}/FirmwareInventory/${component}`)).json().Version;
const profile = (device: string, traits: readonly string[]) =>
  site.control("PUT", `/devices/${device}/profile`, { profile: traits });
const fault = (device: string, rule: Record<string, unknown>) =>
  site.control<{ id: string }>("POST", "/faults", { device, fault: rule });

function offer(component: string, version: string, model?: string): string {
  const path = `/${component}-${version}-${model ?? ""}`;
  offered.set(path, imageOf(component, version, model));
  return images + path;
}

const simple = (device: string, uri: string, more: Record<string, unknown> = {}) =>
  site.redfish(device, `${UPDATE}/Actions/UpdateService.SimpleUpdate`, {
    method: "POST",
    body: { ImageURI: uri, TransferProtocol: "HTTP", ...more },
  });

const upload = (device: string, path: string, call: RedfishCall) =>
  site.redfish(device, `${UPDATE}/${path}`, { method: "POST", ...call });

/** As the truth has it, so that controllers that do not answer do not matter. */
async function flashed(device: string): Promise<Truth> {
  for (;;) {
    const truth = await truthOf(device);
    if (truth.flashes.every(({ outcome }) => outcome !== "running")) return truth;
    await delay(10);
  }
}

async function answering(device: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const reply = await site.redfish(device, "/redfish/v1").catch(() => undefined);
    if (reply?.status === 200) return;
    await delay(10);
  }
  throw new Error(`${device} does not answer`);
}

function multipart(parts: readonly (readonly [name: string, type: string, content: Buffer])[]): RedfishCall {
  const chunks = parts.flatMap(([name, type, content]) => [
    Buffer.from(
      `--xyz\r\nContent-Disposition: form-data; name="${name}"; filename="x"\r\nContent-Type: ${type}\r\n\r\n`,
    ),
    content,
    Buffer.from("\r\n"),
  ]);
  return {
    rawBody: Buffer.concat([...chunks, Buffer.from("--xyz--\r\n")]),
    headers: { "Content-Type": "multipart/form-data; boundary=xyz" },
  };
}

describe("the update service", () => {
  test("shows each component, what it is firmware of, and three ways to replace it", async () => {
    const service = (await site.redfish(machine, UPDATE)).json();
    expect(service).toMatchObject({
      HttpPushUri: `${UPDATE}/update`,
      MultipartHttpPushUri: `${UPDATE}/update-multipart`,
      Actions: { "#UpdateService.SimpleUpdate": { target: `${UPDATE}/Actions/UpdateService.SimpleUpdate` } },
    });
    const bios = (await site.redfish(machine, `${UPDATE}/FirmwareInventory/bios`)).json();
    expect(bios).toMatchObject({ Version: "U46-2.20", Updateable: true });
    expect(bios.RelatedItem).toEqual([{ "@odata.id": "/redfish/v1/Systems/1" }]);
    const shelf = (await site.redfish(SHELF, `${UPDATE}/FirmwareInventory`)).json<{ Members: unknown[] }>();
    expect(shelf.Members).toEqual(["pmc", "psu"].map((id) => ({ "@odata.id": `${UPDATE}/FirmwareInventory/${id}` })));
  });

  test("remembers the update that it was delivered with, which is no flash of ours", async () => {
    const tasks = (await site.redfish(machine, "/redfish/v1/TaskService/Tasks")).json<{
      Members: { "@odata.id": string }[];
    }>();
    expect(tasks.Members).toHaveLength(1);
    const task = await site.redfish(machine, tasks.Members[0]?.["@odata.id"] ?? "");
    expect(task.json()).toMatchObject({ Id: "0", TaskState: "Completed" });
    expect((await truthOf(machine)).flashes).toEqual([]);
  });

  test("fetches an image, tells of its progress, and uses system firmware only after a reset", async () => {
    await site.control("PUT", "/speed", { speed: 100 });
    const accepted = await simple(machine, offer("bios", "U46-3.00"), {
      Targets: [`${UPDATE}/FirmwareInventory/bios`],
    });
    expect(accepted.status).toBe(202);
    const monitor = String(accepted.headers.location);
    const task = accepted.json<{ "@odata.id": string }>()["@odata.id"];
    await delay(700);
    const half = (await site.redfish(machine, task)).json<{ PercentComplete: number }>();
    expect(half).toMatchObject({ TaskState: "Running", TaskStatus: "OK" });
    expect(half.PercentComplete).toBeGreaterThan(10);
    expect(half.PercentComplete).toBeLessThan(99);
    expect((await site.redfish(machine, monitor)).status).toBe(202);
    await site.control("PUT", "/speed", { speed: SPEED });
    await flashed(machine);
    expect((await site.redfish(machine, task)).json()).toMatchObject({
      TaskState: "Completed",
      PercentComplete: 100,
      Messages: expect.arrayContaining([expect.objectContaining({ MessageId: "Base.1.16.ResetRequired" })]),
    });
    expect((await site.redfish(machine, monitor)).status).toBe(204);
    expect(await versionOf(machine, "bios")).toBe("U46-2.20");
    await site.redfish(machine, "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", {
      method: "POST",
      body: { ResetType: "ForceRestart" },
    });
    expect(await versionOf(machine, "bios")).toBe("U46-3.00");
    expect((await site.redfish(machine, "/redfish/v1/Systems/1")).json().BiosVersion).toBe("U46-3.00");
    expect((await truthOf(machine)).flashes).toMatchObject([{ component: "bios", to: "U46-3.00", wrote: true }]);
  });

  test("restarts the controller with its own new firmware, and forgets sessions", async () => {
    const session = await site.redfish(machine, "/redfish/v1/SessionService/Sessions", {
      method: "POST",
      body: { UserName: "root", Password: (await passwordOf(machine)) ?? "" },
    });
    const token = { "X-Auth-Token": String(session.headers["x-auth-token"]) };
    await simple(machine, offer("bmc", "1.10.0"));
    const { effects } = await flashed(machine);
    expect(effects.manager_restarts).toBe(1);
    await answering(machine);
    expect(await versionOf(machine, "bmc")).toBe("1.10.0");
    const manager = (await site.redfish(machine, "/redfish/v1/Managers/bmc")).json();
    expect(manager.FirmwareVersion).toBe("1.10.0");
    const old = await site.redfish(machine, "/redfish/v1/Managers/bmc", { auth: null, headers: token });
    expect(old.status).toBe(401);
  });

  test("takes an image by push, for the targets that were named before", async () => {
    const targets = [`${UPDATE}/FirmwareInventory/psu`];
    await site.redfish(SHELF, UPDATE, { method: "PATCH", body: { HttpPushUriTargets: targets } });
    const rawBody = imageOf("psu", "0300", "PF-1333-7R");
    const reply = await upload(SHELF, "update", { rawBody, headers: { "Content-Type": "application/octet-stream" } });
    expect(reply.status).toBe(202);
    await flashed(SHELF);
    expect(await versionOf(SHELF, "psu")).toBe("0300");
    expect((await site.redfish(SHELF, UPDATE)).json()).toMatchObject({ HttpPushUriTargets: [] });
  });

  test("takes an image and its targets in parts", async () => {
    const parameters = Buffer.from(JSON.stringify({ Targets: [`${UPDATE}/FirmwareInventory/bmc`] }));
    const call = multipart([
      ["UpdateParameters", "application/json", parameters],
      ["UpdateFile", "application/octet-stream", imageOf("bmc", "1.11.0")],
    ]);
    expect((await upload(machine, "update-multipart", call)).status).toBe(202);
    expect((await flashed(machine)).flashes).toMatchObject([{ component: "bmc", to: "1.11.0", outcome: "completed" }]);
  });

  test.each([
    ["no parts", { rawBody: "x", headers: { "Content-Type": "text/plain" } }],
    ["no parameters", multipart([["UpdateFile", "application/octet-stream", imageOf("bmc", "1")]])],
    ["no file", multipart([["UpdateParameters", "application/json", Buffer.from("{}")]])],
    [
      "parameters that are no JSON",
      multipart([
        ["UpdateParameters", "application/json", Buffer.from("{")],
        ["UpdateFile", "application/octet-stream", imageOf("bmc", "1")],
      ]),
    ],
  ])("refuses a multipart update with %s, and writes nothing", async (_what, call) => {
    expect((await upload(machine, "update-multipart", call)).status).toBe(400);
    expect((await truthOf(machine)).flashes).toEqual([]);
  });

  test.each([
    ["is for another model", () => offer("bmc", "2.0", "OTHER"), "the image is for OTHER, and this is GB-2U-96C"],
    ["is for a component that is not there", () => offer("nvos", "2.0"), "there is no component nvos here"],
    ["is not there", () => `${images}/none`, "the image was not transferred: status 404"],
  ])("ends the task of an image that %s, and writes nothing", async (_what, uri, why) => {
    const task = (await simple(machine, uri())).json<{ "@odata.id": string }>()["@odata.id"];
    expect((await site.redfish(machine, task)).json()).toMatchObject({
      TaskState: "Exception",
      TaskStatus: "Critical",
    });
    expect((await truthOf(machine)).flashes).toMatchObject([{ outcome: "failed", wrote: false, why }]);
  });

  test("does one thing at a time", async () => {
    const { body } = await fault(machine, { type: "flash_stuck" });
    await simple(machine, offer("bios", "U46-3.00"));
    const second = await simple(machine, offer("bmc", "1.10.0"));
    expect(second.status).toBe(409);
    await site.control("DELETE", `/faults/${body.id}`);
    expect((await flashed(machine)).flashes).toHaveLength(1);
  });
});

const passwordOf = async (device: string) =>
  (await site.control<{ machine_id: string; bmc_password: string }[]>("GET", "/inventory/machines")).body.find(
    ({ machine_id }) => machine_id === device,
  )?.bmc_password;

describe("faults", () => {
  beforeEach(() => site.control("DELETE", "/faults"));

  test("a flash that is stuck stays where it is until the fault is gone", async () => {
    const { body } = await fault(machine, { type: "flash_stuck", percent: 40 });
    const task = (await simple(machine, offer("bios", "U46-4.00"))).json<{ "@odata.id": string }>()["@odata.id"];
    await delay(500);
    expect((await site.redfish(machine, task)).json()).toMatchObject({ TaskState: "Running", PercentComplete: 40 });
    await site.control("DELETE", `/faults/${body.id}`);
    expect((await flashed(machine)).flashes).toMatchObject([{ outcome: "completed" }]);
  });

  test("a flash that lies is completed, and the version stays", async () => {
    await fault(machine, { type: "flash_lies" });
    const before = await versionOf(machine, "bmc");
    const task = (await simple(machine, offer("bmc", "5.0"))).json<{ "@odata.id": string }>()["@odata.id"];
    await flashed(machine);
    await answering(machine);
    expect((await site.redfish(machine, task)).json()).toMatchObject({ TaskState: "Completed" });
    expect(await versionOf(machine, "bmc")).toBe(before);
  });

  test("a flash that fails says so", async () => {
    await fault(machine, { type: "flash_fails" });
    const task = (await simple(machine, offer("bmc", "6.0"))).json<{ "@odata.id": string }>()["@odata.id"];
    await flashed(machine);
    expect((await site.redfish(machine, task)).json()).toMatchObject({ TaskState: "Exception" });
  });

  test("a wrong image that is accepted leaves a component that nobody knows", async () => {
    await fault(machine, { type: "flash_wrong_image_accepted" });
    await simple(machine, offer("bmc", "7.0", "OTHER"));
    await flashed(machine);
    await answering(machine);
    const bmc = (await site.redfish(machine, `${UPDATE}/FirmwareInventory/bmc`)).json();
    expect(bmc).toMatchObject({ Status: { Health: "Critical" } });
    expect(bmc).not.toHaveProperty("Version");
  });

  test("a service that is busy says when to come again, and begins nothing", async () => {
    await site.control("POST", "/faults", { device: machine, fault: { type: "update_busy" }, times: 1 });
    const reply = await simple(machine, offer("bios", "U46-8.00"));
    expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "1"]);
    expect((await simple(machine, offer("bios", "U46-8.00"))).status).toBe(202);
  });

  test("a task that is lost is not found, and goes on", async () => {
    await fault(machine, { type: "task_lost" });
    const task = (await simple(machine, offer("bios", "U46-9.00"))).json<{ "@odata.id": string }>()["@odata.id"];
    expect((await site.redfish(machine, task)).status).toBe(404);
    expect((await flashed(machine)).flashes.at(-1)).toMatchObject({ to: "U46-9.00", outcome: "completed" });
  });

  test("a controller that is not reachable after its flash comes back", async () => {
    await fault(machine, { type: "unreachable_after_flash", ms: 400 });
    await simple(machine, offer("bios", "U46-9.50"));
    await flashed(machine);
    await expect(site.redfish(machine, "/redfish/v1")).rejects.toThrow();
    await answering(machine);
  });
});

describe("traits", () => {
  test.each([
    ["push_only", ["HttpPushUri"]],
    ["multipart_only", ["MultipartHttpPushUri"]],
    ["simple_only", []],
  ])("%s offers one way alone", async (trait, ways) => {
    await profile(machine, [trait]);
    const service = (await site.redfish(machine, UPDATE)).json<Record<string, unknown>>();
    expect(Object.keys(service).filter((key) => key.endsWith("PushUri"))).toEqual(ways);
    const reply = await simple(machine, offer("bios", "U46-1"));
    expect(reply.status).toBe(trait === "simple_only" ? 202 : 404);
  });

  test("tasks can be unlisted, without percent, and gone when they are done", async () => {
    await profile(machine, ["tasks_unlisted", "task_without_percent", "task_gone_when_done"]);
    const task = (await simple(machine, offer("bios", "U46-1.00"))).json<{ "@odata.id": string }>()["@odata.id"];
    expect((await site.redfish(machine, task)).json()).not.toHaveProperty("PercentComplete");
    expect((await site.redfish(machine, "/redfish/v1/TaskService/Tasks")).json().Members).toEqual([]);
    await flashed(machine);
    expect((await site.redfish(machine, task)).status).toBe(404);
  });

  test("a controller can need somebody to restart it", async () => {
    await profile(machine, ["version_needs_reset"]);
    await simple(machine, offer("bmc", "8.1"));
    const { effects } = await flashed(machine);
    expect(await versionOf(machine, "bmc")).not.toBe("8.1");
    await site.redfish(machine, "/redfish/v1/Managers/bmc/Actions/Manager.Reset", {
      method: "POST",
      body: { ResetType: "GracefulRestart" },
    });
    await answering(machine);
    expect(await versionOf(machine, "bmc")).toBe("8.1");
    expect((await truthOf(machine)).effects.manager_restarts).toBe(effects.manager_restarts + 1);
  });

  test("a controller can make itself another certificate, which is then its own", async () => {
    await profile(machine, ["new_certificate_after_flash"]);
    const before = await certificateOf(machine);
    const neighbour = await certificateOf(NEIGHBOUR);
    await simple(machine, offer("bmc", "8.3"));
    await flashed(machine);
    const after = await certificateOf(machine);
    expect(after.fingerprint256).not.toBe(before.fingerprint256);
    expect(after.subjectAltName).toContain(await addressOf(machine));
    expect((await certificateOf(NEIGHBOUR)).fingerprint256).toBe(neighbour.fingerprint256);
    await expect(site.redfish(machine, "/redfish/v1")).rejects.toThrow();
  });
});

const endpointOf = async (device: string): Promise<readonly [string, number]> => {
  const { body } = await site.control<{ address: string; port: number }>("GET", `/devices/${device}`);
  return [body.address, body.port];
};
const addressOf = async (device: string) => (await endpointOf(device))[0];

async function certificateOf(device: string): Promise<X509Certificate> {
  const [host, port] = await endpointOf(device);
  const socket = connectTls({ host, port, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const raw = socket.getPeerCertificate().raw;
  socket.destroy();
  return new X509Certificate(raw);
}
