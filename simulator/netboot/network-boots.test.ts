import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { startSimulator } from "../simulator.ts";
import { connect, startTemporarySimulator, temporaryDataDir } from "../testing/temporary-simulator.ts";

const IMAGE = "an image of a disk";
const DIGEST = `sha256:${createHash("sha256").update(IMAGE).digest("hex")}`;
const MACHINE = "unknown-1";
const MAC = "02:00:5e:10:00:01";

interface Report {
  readonly installation_status?: string;
  readonly installation_progress?: number;
  readonly installation_error?: string;
  readonly event?: string;
  readonly step?: { readonly sequence: number; readonly state: string };
  readonly report_token: string;
}

interface Device {
  readonly os: {
    readonly up: boolean;
    readonly hung: string | null;
    readonly image: string | null;
    readonly source: string | null;
    readonly network_boot: { readonly progress: number | null; readonly screen: string } | null;
  };
  readonly power: string;
  readonly effects: Readonly<Record<string, number>>;
}

/** A boot server that is not ours: it hands out what it is told, and keeps what it hears. */
async function openBootServer() {
  const reports: Report[] = [];
  const asked: string[] = [];
  let boot = "exit";
  let steps = () => "";
  const server = createServer(async (request, response) => {
    asked.push(request.url ?? "");
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += String(piece);
    const url = `http://${request.headers.host}`;
    const path = (request.url ?? "").split("?")[0] ?? "";
    if (path === "/api/v1/boot.ipxe")
      response.end(
        `#!ipxe\nchain ${url}/api/v1/boot?mac=\${netX/mac}&vendor=\${manufacturer:uristring} || goto failed\n:failed\nexit\n`,
      );
    else if (path === "/api/v1/boot")
      response.end(`#!ipxe\necho from ${request.socket.remoteAddress}\n${boot.replaceAll("SERVER", url)}\n`);
    else if (path === "/files/image") response.end(IMAGE);
    else if (path === "/files/kernel") response.end("kernel");
    else if (path === "/api/v1/boot/steps") response.end(steps());
    else if (path === "/api/v1/report") {
      reports.push(JSON.parse(body) as Report);
      response.end(JSON.stringify({ data: { state: "installing" } }));
    } else response.writeHead(404).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  opened.push(() => void server.close());
  const words = `millwright.server=SERVER millwright.mac=${MAC} millwright.token=t-1`;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reports,
    asked,
    told: () => reports.map(({ installation_status, event }) => event ?? installation_status),
    hands: (more: string, itsSteps = () => "") => {
      boot = `kernel SERVER/files/kernel ${words} ${more} || goto failed\nboot\n:failed\nexit`;
      steps = itsSteps;
    },
  };
}

const opened: (() => void)[] = [];
afterEach(() => {
  for (const close of opened.splice(0)) close();
});

const image = `millwright.image=SERVER/files/image millwright.digest=${DIGEST}`;
const base64 = (text: string) => Buffer.from(text).toString("base64");

async function openSite(speed = 5_000) {
  const server = await openBootServer();
  const site = await startTemporarySimulator({ site: "racks=1,unknown=1", speed });
  const truth = async () => (await site.control<Device>("GET", `/devices/${MACHINE}`)).body;
  const fault = (type: string, more: object = {}) =>
    site.control("POST", "/faults", { device: MACHINE, fault: { type, ...more }, times: 1 });
  const turnOn = async () => {
    const { status } = await site.control("PUT", "/boot-server", { url: server.url });
    expect(status).toBe(200);
  };
  const reset = async () => {
    for (const power of ["off", "on"]) await site.control("POST", `/devices/${MACHINE}/power`, { power });
  };
  return { server, site, truth, fault, turnOn, reset, [Symbol.asyncDispose]: () => site[Symbol.asyncDispose]() };
}
const soon = { timeout: 8_000 };

describe("a machine that boots from the network", () => {
  test("is in no inventory, asks with what its firmware knows from its own address, and asks again while its disk is empty", async () => {
    await using here = await openSite();
    const { body: rows } = await here.site.control<unknown[]>("GET", "/inventory/machines");
    expect(rows).toHaveLength(18);
    expect(await here.truth()).toMatchObject({ os: { up: false, hung: "no_boot_device" } });
    await here.turnOn();
    await expect
      .poll(() => here.server.asked.filter((each) => each.startsWith("/api/v1/boot?")).length, soon)
      .toBeGreaterThan(1);
    expect(here.server.asked).toContain(`/api/v1/boot?mac=${MAC}&vendor=Generic`);
    expect((await here.truth()).effects).toMatchObject({ installs_started: 0 });
  });

  test("installs what it is told to, reports as the environment does, and boots from its disk", async () => {
    await using here = await openSite();
    here.server.hands(image);
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ os: { up: true, source: "pxe", image: "image" } });
    expect(here.server.told()).toEqual(["started", ...Array(10).fill("progress"), "complete"]);
    expect(here.server.reports.every(({ report_token }) => report_token === "t-1")).toBe(true);
    expect((await here.truth()).effects).toMatchObject({ installs_started: 1, installs: 1, boots: 1 });
  });

  test("says so when the image is another one, and tries again", async () => {
    await using here = await openSite();
    here.server.hands(image.replace(DIGEST, `sha256:${"0".repeat(64)}`));
    await here.turnOn();
    await expect.poll(() => here.server.told().filter((each) => each === "failed").length, soon).toBeGreaterThan(1);
    expect(here.server.reports.find((each) => each.installation_error !== undefined)?.installation_error).toContain(
      DIGEST,
    );
  });

  test("carries out steps, and goes on behind a reboot", async () => {
    await using here = await openSite();
    const lines = (done: string) =>
      `step 1 disk_scan 60 fail 0 1 - ${done}\nname ${base64("a")}\nstep 2 reboot 60 fail 0 1 - ${done}\nstep 3 boot 60 fail 0 1 - todo\nset x ${base64("y")}\nend\n`;
    const steps = () =>
      here.server.reports.flatMap(({ step }) => (step === undefined ? [] : [`${step.sequence} ${step.state}`]));
    here.server.hands(`${image} millwright.steps=3`, () =>
      steps().includes("2 rebooting")
        ? `millwright-steps 1\nstate installing\nresumes\n${lines("done")}`
        : `millwright-steps 1\nstate pending\n${lines("todo")}`,
    );
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ os: { up: true, source: "pxe" } });
    expect(steps()).toContain("2 rebooting");
    expect(here.server.told().filter((each) => each === "started")).toHaveLength(1);
    expect(steps().slice(-2)).toEqual(["3 running", "3 completed"]);
  });

  test("erases its disks, reports each, and is off", async () => {
    await using here = await openSite();
    here.server.hands("millwright.task=erase");
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ power: "off" });
    expect(here.server.told()).toEqual(["disk_erased", "disk_erased", "erased"]);
  });

  test("boots from its disk when the server is not there, or hands out nothing that it can load", async () => {
    await using here = await openSite();
    here.server.hands(image);
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ os: { up: true } });
    const system = "/redfish/v1/Systems/1";
    const Boot = { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Pxe" };
    await here.site.redfish("m-rack1-01", system, { method: "PATCH", body: { Boot } });
    here.server.hands("x");
    await here.site.control("PUT", "/boot-server", { url: "http://127.0.0.1:9" });
    await here.site.redfish("m-rack1-01", `${system}/Actions/ComputerSystem.Reset`, {
      method: "POST",
      body: { ResetType: "ForceRestart" },
    });
    const other = async () => (await here.site.control<Device>("GET", "/devices/m-rack1-01")).body;
    await expect
      .poll(other, soon)
      .toMatchObject({ os: { up: true, source: "factory" }, effects: { network_boots: 1, boots: 1 } });
  });
});

describe("faults of machines that boot from the network", () => {
  test("hangs_in_post: it asks for nothing until somebody resets it", async () => {
    await using here = await openSite();
    await here.fault("hangs_in_post");
    here.server.hands(image);
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ os: { hung: "post" } });
    expect(here.server.asked).toEqual([]);
    await here.reset();
    await expect.poll(here.truth, soon).toMatchObject({ os: { up: true } });
  });

  test("install_dies: nothing is heard behind that percentage, and the disk is lost", async () => {
    await using here = await openSite();
    await here.fault("install_dies", { percent: 60 });
    here.server.hands(image);
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ os: { hung: "kernel_panic", image: null } });
    expect(here.server.reports.at(-1)).toMatchObject({ installation_progress: 50 });
    await here.reset();
    await expect.poll(here.truth, soon).toMatchObject({ os: { up: true } });
  });

  test("loses_lease: it goes on for itself, and nobody hears of it", async () => {
    await using here = await openSite();
    await here.fault("loses_lease");
    here.server.hands(image);
    await here.turnOn();
    await expect.poll(here.truth, soon).toMatchObject({ os: { network_boot: { progress: 30, cut: true } } });
    expect(here.server.reports.at(-1)).toMatchObject({ installation_progress: 20 });
    await here.reset();
    await expect.poll(here.truth, soon).toMatchObject({ os: { up: true } });
  });
});

test("an installation over the network goes on where it was when the simulator is stopped in the middle of it", async () => {
  using dir = temporaryDataDir();
  const server = await openBootServer();
  server.hands(image);
  const options = { dataDir: dir.path, seed: 7, site: "racks=1,unknown=1" };
  const first = await startSimulator({ ...options, speed: 500, bootUrl: server.url });
  await connect({ dataDir: dir.path, controlUrl: first.controlUrl }).control("PUT", "/boot-server", {
    url: server.url,
  });
  await expect.poll(() => server.reports.some((each) => each.installation_progress === 20), soon).toBe(true);
  await first.close();
  const second = await startSimulator({ ...options, speed: 5_000 });
  const { control, agent } = connect({ dataDir: dir.path, controlUrl: second.controlUrl });
  const truth = async () => (await control<Device>("GET", `/devices/${MACHINE}`)).body;
  await expect
    .poll(truth, soon)
    .toMatchObject({ os: { up: true, source: "pxe" }, effects: { installs_started: 1, installs: 1 } });
  expect(server.told().filter((each) => each === "started")).toHaveLength(1);
  agent.destroy();
  await second.close();
});
