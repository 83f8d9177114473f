import { hash } from "node:crypto";
import { request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTemporarySimulator } from "../testing/temporary-simulator.ts";

const FIRST = "rack-1-switch-1";
const APPS = "/nvue_v1/cluster/apps";
const APP = `${APPS}/nmx-controller`;
const START = { "@start": { state: "start", parameters: {} } };
const CHASSIS = "/redfish/v1/Chassis/MGX_NVSwitch_0";

type Site = Awaited<ReturnType<typeof startTemporarySimulator>>;
interface Row {
  readonly bmc_ip_address: string;
  readonly nvos_username: string;
  readonly nvos_password: string;
  readonly nvos_mac_addresses: readonly string[];
  readonly switch_serial_number: string;
  readonly metadata: { readonly name: string };
}
interface Truth {
  readonly power: string;
  readonly nvos: { readonly address: string; readonly mac: string; readonly up: boolean };
  readonly fabric: { readonly controller: string; readonly cluster: string };
  readonly port: number;
  readonly effects: Readonly<Record<string, number>>;
}

let site: Site;
beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=3,joined=1", speed: 1_000 });
});
afterAll(() => site[Symbol.asyncDispose]());

const rows = async () => (await site.control<Row[]>("GET", "/inventory/switches")).body;
const truthOf = async (id: string) => (await site.control<Truth>("GET", `/devices/${id}`)).body;

/** As whoever configures the fabric asks it. Undefined: nothing answers. */
async function nvue(
  id: string,
  method: string,
  path: string,
  body?: unknown,
  password?: string,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> } | undefined> {
  const row = (await rows()).find(({ metadata }) => metadata.name === id);
  const { nvos, port } = await truthOf(id);
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof nvue>>>();
  const text = body === undefined ? "" : JSON.stringify(body);
  const auth = `${row?.nvos_username}:${password ?? row?.nvos_password}`;
  const headers = text === "" ? {} : { "Content-Length": Buffer.byteLength(text) };
  const asked = request({ host: nvos.address, port, path, method, auth, headers, agent: site.agent }, (answer) => {
    const chunks: Buffer[] = [];
    answer.on("data", (chunk: Buffer) => chunks.push(chunk));
    answer.on("end", () =>
      resolve({ status: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString("utf8")) }),
    );
  });
  asked.on("error", () => resolve(undefined));
  asked.end(text);
  return promise;
}

async function enableCluster(id: string): Promise<void> {
  const opened = await nvue(id, "POST", "/nvue_v1/revision");
  const [revision = ""] = Object.keys(opened?.body ?? {});
  const encoded = encodeURIComponent(revision);
  await nvue(id, "PATCH", `/nvue_v1/cluster?rev=${encoded}`, { state: "enabled" });
  expect((await truthOf(id)).fabric.cluster).toBe("disabled");
  const apply = { state: "apply", "auto-prompt": { ays: "ays_yes" } };
  expect((await nvue(id, "PATCH", `/nvue_v1/revision/${encoded}`, apply))?.body.state).toMatch(/^appl/);
  await until("the changes are applied", async () => {
    const body = (await nvue(id, "GET", `/nvue_v1/revision/${encoded}`))?.body;
    return body?.state === "applied";
  });
}

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await isTrue()) return;
    await delay(20);
  }
  throw new Error(`not seen: ${what}`);
}

const configured = (body: Record<string, unknown> | undefined) =>
  body?.status === "ok" && body["addition-info"] === "CONTROL_PLANE_STATE_CONFIGURED";

describe("a switch", () => {
  test("shows its place, its own system's port and the firmware of its components", async () => {
    const chassis = (await site.redfish(FIRST, CHASSIS)).json();
    const row = (await rows()).find(({ metadata }) => metadata.name === FIRST);
    expect(chassis).toMatchObject({
      SerialNumber: row?.switch_serial_number,
      PowerState: "On",
      Location: { PartLocation: { LocationOrdinalValue: 19 } },
      Oem: { Nvidia: { TrayIndex: 0 } },
    });
    const port = (await site.redfish(FIRST, "/redfish/v1/Managers/bmc/EthernetInterfaces/eth1")).json();
    const { nvos } = await truthOf(FIRST);
    expect(port).toMatchObject({ MACAddress: nvos.mac, IPv4Addresses: [{ Address: nvos.address }] });
    expect(row?.nvos_mac_addresses).toEqual([nvos.mac]);
    const inventory = (await site.redfish(FIRST, "/redfish/v1/UpdateService/FirmwareInventory")).json<{
      Members: { "@odata.id": string }[];
    }>();
    const ids = inventory.Members.map((member) => member["@odata.id"].split("/").at(-1));
    expect(ids).toEqual(["bmc", "bios", "cpld", "nvos"]);
    expect((await site.redfish(FIRST, "/redfish/v1/Systems")).status).toBe(404);
  });

  test("there are nine in a rack, each at addresses of its own", async () => {
    expect(await rows()).toHaveLength(27);
    const { body } = await site.control<Truth[]>("GET", "/devices?kind=switch");
    expect(new Set(body.map(({ nvos }) => nvos.address)).size).toBe(27);
  });

  test("its own system does not answer while it has no power, nor while it starts", async () => {
    const id = "rack-2-switch-9";
    const reset = (ResetType: string) =>
      site.redfish(id, `${CHASSIS}/Actions/Chassis.Reset`, { method: "POST", body: { ResetType } });
    await reset("ForceOff");
    await until("it is off", async () => (await truthOf(id)).power === "off");
    expect(await nvue(id, "GET", APP)).toBeUndefined();
    expect((await reset("ForceRestart")).status).toBe(409);
    await reset("On");
    await until("it is up", async () => (await truthOf(id)).nvos.up);
    expect((await nvue(id, "GET", APP))?.status).toBe(200);
    expect((await truthOf(id)).effects).toMatchObject({
      power_off_commands: 1,
      power_on_commands: 1,
      power_changes: 2,
    });
  });

  test("a wrong password of its own system is refused", async () => {
    expect((await nvue(FIRST, "GET", APP, undefined, "wrong"))?.status).toBe(401);
  });

  test("firmware of its own waits for a reset, its CPLD for a power cycle", async () => {
    const id = "rack-2-switch-8";
    const { body } = await site.control<{ config: { BoardSKUs: Sku[] } }[]>("GET", "/firmware/catalogue");
    const newer = body[1]?.config.BoardSKUs.find(({ Type }) => Type === "Switch Tray")?.Components.Firmware ?? [];
    const flash = async (component: string) => {
      const one = newer.find(({ Component }) => Component === component);
      await site.redfish(id, "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", {
        method: "POST",
        body: { ImageURI: one?.Locations[0]?.Location, Targets: [one?.Target] },
      });
      await until("it is flashed", async () => {
        const { body: truth } = await site.control<{ flashes: { outcome: string }[] }>("GET", `/devices/${id}`);
        return truth.flashes.every(({ outcome }) => outcome === "completed");
      });
      return one?.Version;
    };
    const versionOf = async (component: string) =>
      (await site.redfish(id, `/redfish/v1/UpdateService/FirmwareInventory/${component}`)).json().Version;
    const [nvos, cpld] = [await flash("NVOS"), await flash("CPLD")];
    const reset = (ResetType: string) =>
      site.redfish(id, `${CHASSIS}/Actions/Chassis.Reset`, { method: "POST", body: { ResetType } });
    expect([await versionOf("nvos"), await versionOf("cpld")]).not.toContain(nvos);
    await reset("ForceRestart");
    expect([await versionOf("nvos"), (await versionOf("cpld")) === cpld]).toEqual([nvos, false]);
    await reset("PowerCycle");
    await until("the CPLD is used", async () => (await versionOf("cpld")) === cpld);
  });
});

interface Sku {
  readonly Type: string;
  readonly Components: {
    readonly Firmware: readonly {
      readonly Component: string;
      readonly Version: string;
      readonly Target: string;
      readonly Locations: readonly { readonly Location: string; readonly Sha256: string; readonly Size: number }[];
    }[];
  };
}

describe("the fabric of a rack", () => {
  test("is configured on one switch, which all of its rack then say, and no other rack", async () => {
    expect((await nvue(FIRST, "GET", APP))?.body).toMatchObject({
      status: "not ok",
      "addition-info": "CONTROL_PLANE_STATE_UNCONFIGURED",
    });
    expect((await nvue(FIRST, "POST", APP, START))?.status).toBe(409);
    await enableCluster(FIRST);
    const running = async (id: string) => Object.keys((await nvue(id, "GET", `${APPS}/running`))?.body ?? {});
    expect(await running(FIRST)).toEqual([]);
    expect((await nvue(FIRST, "POST", APP, START))?.status).toBe(201);
    expect([await running(FIRST), await running("rack-1-switch-9")]).toEqual([["nmx-controller"], []]);
    await until("the fabric is configured", async () => configured((await nvue("rack-1-switch-9", "GET", APP))?.body));
    expect(configured((await nvue("rack-2-switch-1", "GET", APP))?.body)).toBe(false);
    expect((await truthOf(FIRST)).effects).toMatchObject({ configuration_changes: 1, fabric_starts: 1 });
  });

  test("is there already in a rack whose machines are nodes", async () => {
    expect(configured((await nvue("rack-3-switch-4", "GET", APP))?.body)).toBe(true);
  });

  test("comes to nothing where a fault says so", async () => {
    await site.control("POST", "/faults", { device: "rack-2-*", fault: { type: "fabric_never_configured" } });
    await enableCluster("rack-2-switch-1");
    await nvue("rack-2-switch-1", "POST", APP, START);
    await delay(150);
    expect((await nvue("rack-2-switch-2", "GET", APP))?.body).toMatchObject({
      status: "not ok",
      reason: "GFM: UNINITIALIZED",
    });
    expect((await truthOf("rack-2-switch-1")).fabric.controller).toBe("failing");
  });
});

describe("what a site has for its maintenance", () => {
  test("profiles say what the racks have in them", async () => {
    const { body: racks } = await site.control<{ rack_id: string; rack_profile_id: string }[]>(
      "GET",
      "/inventory/racks",
    );
    expect(racks.map(({ rack_profile_id }) => rack_profile_id)).toEqual([
      "nvl72-liteon",
      "nvl72-standard",
      "nvl72-liteon",
    ]);
    const { body: profiles } = await site.control<unknown[]>("GET", "/inventory/profiles");
    expect(profiles).toMatchObject([
      { name: "nvl72-liteon", compute: { count: 18 }, switches: { count: 9 }, power_shelves: { count: 8 } },
      { name: "nvl72-standard" },
    ]);
  });

  test("each kind of rack has the firmware that it came with, a newer one, and images that are what they say", async () => {
    const { body } = await site.control<{ hardware_type: string; config: { Id: string; BoardSKUs: Sku[] } }[]>(
      "GET",
      "/firmware/catalogue",
    );
    expect(body.map(({ hardware_type, config }) => `${hardware_type} ${config.Id}`)).toEqual([
      "gb200-liteon fw-v2.0-liteon",
      "gb200-liteon fw-v2.1-liteon",
      "gb200-standard fw-v2.0-standard",
      "gb200-standard fw-v2.1-standard",
    ]);
    const files = body.flatMap(({ config }) =>
      config.BoardSKUs.flatMap(({ Components }) => Components.Firmware.flatMap(({ Locations }) => Locations)),
    );
    expect(files).toHaveLength(4 * 8);
    for (const { Location, Sha256, Size } of files) {
      const whole = Buffer.from(await (await fetch(Location)).arrayBuffer());
      expect([whole.length, hash("sha256", whole)]).toEqual([Size, Sha256]);
    }
    const rest = await fetch(files[0]?.Location ?? "", { headers: { Range: "bytes=100-" } });
    expect([rest.status, (await rest.arrayBuffer()).byteLength]).toEqual([206, (files[0]?.Size ?? 0) - 100]);
    expect((await fetch(`${site.simulator.controlUrl}/firmware/images/none`)).status).toBe(404);
  });
});
