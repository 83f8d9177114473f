import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Config } from "../config.ts";
import type { Log } from "../telemetry/log.ts";

export interface SimulatorProcess {
  readonly controlUrl: string;
  stop(): Promise<void>;
}

const MAIN = join(import.meta.dirname, "..", "..", "simulator", "main.ts");

/** The flags that the simulator takes for this configuration. */
export const simulatorFlags = ({ sim, dataDir }: Config): string[] => [
  "--data-dir",
  join(dataDir, "simulator"),
  "--speed",
  String(sim.speed),
  "--seed",
  String(sim.seed),
  "--site",
  sim.site,
];

/**
 * Starts the simulator as a child in a session of its own, so that Ctrl-C reaches us alone and the devices are there until the
 * last call has been made. It ends with us, whatever ends us: its standard input closes.
 */
export async function startSimulatorProcess(config: Config, log: Log, signal: AbortSignal): Promise<SimulatorProcess> {
  const child = spawn(process.execPath, [MAIN, ...simulatorFlags(config), "--exit-with-parent"], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const complaints: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    complaints.push(line);
    log.debug({ line }, "simulator");
  });
  const ended = once(child, "exit");
  const ready = await Promise.race([
    readyLine(child),
    ended.then(() => undefined),
    once(signal, "abort").then(() => undefined),
  ]);
  if (!ready) {
    child.kill("SIGTERM");
    throw new Error(`the simulator did not start: ${complaints.join(" ") || "it was stopped"}`);
  }
  return {
    controlUrl: ready.controlUrl,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function readyLine(child: ChildProcess): Promise<{ controlUrl: string } | undefined> {
  if (!child.stdout) return undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith("{")) return JSON.parse(line) as { controlUrl: string };
  }
  return undefined;
}
