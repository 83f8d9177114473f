import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test } from "vitest";
import { startSimulator } from "./simulator.ts";
import { connect, type InventoryRow, temporaryDataDir } from "./testing/temporary-simulator.ts";

const MAIN = join(import.meta.dirname, "main.ts");
const CHASSIS = "/redfish/v1/Chassis/powershelf";
const running = new Set<ChildProcess>();

afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});

function spawnSimulator(dataDir: string, ...flags: string[]): ChildProcess {
  const child = spawn(process.execPath, [MAIN, "--data-dir", dataDir, "--site", "racks=1", ...flags], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  return child;
}

async function startProcess(dataDir: string, ...flags: string[]) {
  const child = spawnSimulator(dataDir, ...flags);
  if (child.stdout === null) throw new Error("no standard output");
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const ready = JSON.parse(line) as { ready: boolean; controlUrl: string; redfishPort: number };
  return { child, ready, ...connect({ dataDir, controlUrl: ready.controlUrl }) };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> {
  const exit = once(child, "exit");
  child.kill(signal);
  return (await exit)[0];
}

describe("the simulator as a process", () => {
  test("after kill -9 the same devices answer at the same places, and a pending change completes", async () => {
    using dir = temporaryDataDir();
    // So slow that the change is still pending after the restart, however busy this machine is.
    const slow = ["--speed", "0.01"];
    const first = await startProcess(dir.path, ...slow);
    const { body: inventory } = await first.control<InventoryRow[]>("GET", "/inventory");
    await first.control("POST", "/faults", { device: "rack-1-shelf-2", fault: { type: "drop" }, times: 3 });
    const off = { method: "POST", body: { ForceOffType: "ForceOff" } };
    expect((await first.redfish("rack-1-shelf-1", `${CHASSIS}/Actions/Chassis.ForceOff`, off)).status).toBe(200);
    const reset = { method: "POST", body: { ResetType: "GracefulShutdown" } };
    const system = "/redfish/v1/Systems/1";
    expect((await first.redfish("m-rack1-01", `${system}/Actions/ComputerSystem.Reset`, reset)).status).toBe(204);
    await end(first.child, "SIGKILL");

    const second = await startProcess(dir.path, ...slow);
    expect(second.ready).toEqual(first.ready);
    expect((await second.control("GET", "/inventory")).body).toEqual(inventory);
    expect((await second.control("GET", "/devices/rack-1-shelf-1")).body).toMatchObject({ power: "powering_off" });
    expect((await second.control("GET", "/faults")).body).toMatchObject([{ device: "rack-1-shelf-2", times: 3 }]);
    expect((await second.control("GET", "/devices/m-rack1-01")).body).toMatchObject({
      power: "on",
      os: { up: false, doing: "shutting_down" },
    });
    await second.control("PUT", "/speed", { speed: 100_000 });
    await expect
      .poll(async () => (await second.control("GET", "/devices/m-rack1-01")).body, { timeout: 9_000 })
      .toMatchObject({ power: "off", effects: { graceful_shutdown_commands: 1, power_changes: 1 } });
    await expect
      .poll(async () => (await second.redfish("rack-1-shelf-1", CHASSIS)).json(), { timeout: 9_000 })
      .toMatchObject({ PowerState: "Off" });
    expect((await second.control("GET", "/devices/rack-1-shelf-1")).body).toMatchObject({
      power: "off",
      effects: { power_off_commands: 1, power_changes: 1 },
    });
    expect(await end(second.child, "SIGTERM")).toBe(0);
  });

  test("says where it is while it runs, and takes that back when it is stopped", async () => {
    using dir = temporaryDataDir();
    const { child, ready } = await startProcess(dir.path);
    const file = join(dir.path, "simulator.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
      pid: child.pid,
      controlUrl: ready.controlUrl,
      redfishPort: ready.redfishPort,
    });
    expect(await end(child, "SIGINT")).toBe(0);
    expect(existsSync(file)).toBe(false);
  });

  test("ends with its parent, when asked to", async () => {
    using dir = temporaryDataDir();
    const { child } = await startProcess(dir.path, "--exit-with-parent");
    const exit = once(child, "exit");
    child.stdin?.end();
    expect((await exit)[0]).toBe(0);
  });

  test("refuses what it cannot do, with a message that names it", async () => {
    using dir = temporaryDataDir();
    const child = spawnSimulator(dir.path, "--fault", '{"device":"*","fault":{"type":"nope"}}');
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    const [code] = await once(child, "close");
    expect(code).toBe(64);
    expect(said).toContain("faults[0].fault.type");
  });
});

describe("a data directory", () => {
  const start = (dataDir: string, seed = 1) => startSimulator({ dataDir, speed: 1, seed, site: "racks=1" });

  test("serves one simulator at a time", async () => {
    using dir = temporaryDataDir();
    const first = await start(dir.path);
    await expect(start(dir.path)).rejects.toThrow(/another simulator is running/);
    await first.close();
    const second = await start(dir.path);
    expect(second.redfishPort).toBe(first.redfishPort);
    expect(second.controlUrl).toBe(first.controlUrl);
    await second.close();
  });

  test("has ports that the kernel gives to nobody else while no simulator runs", async () => {
    using dir = temporaryDataDir();
    const { redfishPort, sshPort, controlUrl, close } = await start(dir.path);
    await close();
    const [lowest] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s+/).map(Number);
    for (const port of [redfishPort, sshPort, Number(new URL(controlUrl).port)]) expect(port).toBeLessThan(lowest ?? 0);
  });

  test("belongs to the seed that it was made with", async () => {
    using dir = temporaryDataDir();
    await (await start(dir.path, 1)).close();
    await expect(start(dir.path, 2)).rejects.toThrow(/seed: .* holds the devices of seed 1/);
  });
});
