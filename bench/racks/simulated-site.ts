import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { FirmwareRecord } from "../../simulator/site/firmware.ts";
import { cpuSecondsOf } from "../figures/process-figures.ts";

/** The simulator as a process of its own. */
export interface SimulatedSite {
  readonly file: object;
  /** Where people around the site act on it. */
  readonly controlUrl: string;
  readonly firmware: readonly FirmwareRecord[];
  cpuSeconds(): number;
  stop(): Promise<void>;
}

/** @param speed How much faster than life: what devices take their time for is not what is measured. */
export async function startSimulatedSite(site: string, speed: number): Promise<SimulatedSite> {
  const dataDir = mkdtempSync(join(tmpdir(), "millwright-bench-site-"));
  const main = new URL("../../simulator/main.ts", import.meta.url).pathname;
  const flags = ["--data-dir", dataDir, "--site", site, "--speed", String(speed), "--exit-with-parent"];
  const simulator = spawn(process.execPath, [main, ...flags], { stdio: ["pipe", "pipe", "inherit"] });
  const stop = async () => {
    if (simulator.exitCode === null && simulator.signalCode === null) {
      const ended = once(simulator, "exit");
      simulator.kill("SIGTERM");
      await ended;
    }
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    const [line] = (await Promise.race([
      once(createInterface(simulator.stdout), "line"),
      once(simulator, "exit").then(([code]) => Promise.reject(new Error(`the simulator ended with ${code}`))),
    ])) as [string];
    const { controlUrl } = JSON.parse(line) as { readonly controlUrl: string };
    const read = async (path: string) => (await fetch(new URL(path, controlUrl))).json();
    return {
      controlUrl,
      file: (await read("/inventory/site")) as object,
      firmware: (await read("/firmware/catalogue")) as FirmwareRecord[],
      cpuSeconds: () => cpuSecondsOf(simulator.pid ?? 0),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
