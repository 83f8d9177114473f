import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { BenchDatabase } from "./bench-server.ts";
import { cpuSecondsOf, peakMbOf, residentMbOf } from "./figures/process-figures.ts";

export interface ServeProcess {
  readonly grpcAddress: string;
  readonly httpUrl: string;
  /** As the system counts it, right now. */
  residentMb(): number;
  /** The most that it ever had. */
  peakMb(): number;
  /** Processor time that it has taken. */
  cpuSeconds(): number;
  stop(): Promise<void>;
}

const PATIENCE_MS = 60_000;

/** `millwright serve`, as it is started in production; callers need no token. */
export async function startServeProcess(
  config: BenchDatabase["config"],
  { keyFile, env = {} }: { readonly keyFile: string; readonly env?: Readonly<Record<string, string>> },
): Promise<ServeProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), "millwright-bench-serve-"));
  const millwright = new URL("../bin/millwright", import.meta.url).pathname; // with its settings of Node; it becomes the server
  const server = spawn(millwright, ["serve", "--data-dir", dataDir], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      MILLWRIGHT_DATABASE_URL: urlOf(config),
      MILLWRIGHT_SECRET_KEY_FILE: keyFile,
      MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_AUTH_MODE: "off",
      MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8",
      MILLWRIGHT_LOG_LEVEL: "warn",
      ...env,
    },
  });
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null) {
      const ended = once(server, "exit");
      server.kill("SIGTERM");
      await ended;
    }
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    const { grpc, http } = await endpointsIn(dataDir, () => server.exitCode);
    const pid = server.pid ?? 0;
    return {
      grpcAddress: grpc,
      httpUrl: http,
      residentMb: () => residentMbOf(pid),
      peakMb: () => peakMbOf(pid),
      cpuSeconds: () => cpuSecondsOf(pid),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

export const urlOf = ({ host, port, user, database }: BenchDatabase["config"]): string =>
  `postgresql://${encodeURIComponent(user)}@/${database}?host=${encodeURIComponent(host)}${port === undefined ? "" : `&port=${port}`}`;

interface Endpoints {
  readonly grpc: string;
  readonly http: string;
}

async function endpointsIn(dataDir: string, exitCode: () => number | null): Promise<Endpoints> {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    if (exitCode() !== null) throw new Error(`the server ended with ${exitCode()}`);
    try {
      return JSON.parse(readFileSync(join(dataDir, "endpoints.json"), "utf8")) as Endpoints;
    } catch {
      await pause(50); // it is written once the server is up
    }
  }
  throw new Error("the server did not come up");
}
