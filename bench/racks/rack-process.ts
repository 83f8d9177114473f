import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchDatabase } from "../bench-server.ts";
import { cpuSecondsOf, peakMbOf } from "../figures/process-figures.ts";
import { urlOf } from "../serve-process.ts";
import type { ServerUnderTest } from "./bring-up.ts";

/** A command that reached a device. */
export interface Commanded {
  readonly device: string;
  readonly command: string;
  /** Of the system's monotonic clock, which all processes share, in nanoseconds. */
  readonly at: bigint;
}

/** A server with its site inside it, as a process of its own. */
export interface RackProcess extends ServerUnderTest {
  onCommand: (commanded: Commanded) => void;
  /** Sent to the database since the start. */
  statements(): Promise<number>;
  stop(): Promise<void>;
}

export interface RackProcessOptions {
  /** In the words of the simulator. */
  readonly site: string;
  readonly env?: Readonly<Record<string, string>>;
}

type Message =
  | { readonly grpcAddress: string; readonly httpUrl: string }
  | { readonly device: string; readonly command: string; readonly at: string }
  | { readonly statements: number };

export async function startRackProcess(
  config: BenchDatabase["config"],
  { site, env = {} }: RackProcessOptions,
): Promise<RackProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), "millwright-bench-racks-"));
  const child = fork(new URL("rack-server.ts", import.meta.url), [site], {
    execArgv: process.execArgv.filter((flag) => !flag.startsWith("--cpu-prof")),
    env: {
      ...process.env,
      MILLWRIGHT_DATABASE_URL: urlOf(config),
      MILLWRIGHT_DATA_DIR: dataDir,
      MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_AUTH_MODE: "off",
      MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8",
      MILLWRIGHT_FIRMWARE_ALLOWED_NETWORKS: "127.0.0.0/8",
      MILLWRIGHT_LOG_LEVEL: "warn",
      ...env,
    },
  });
  const up = Promise.withResolvers<{ readonly grpcAddress: string; readonly httpUrl: string }>();
  let counted = Promise.withResolvers<number>();
  const pid = child.pid ?? 0;
  child.on("message", (message: Message) => {
    if ("device" in message) rack.onCommand({ ...message, at: BigInt(message.at) });
    else if ("statements" in message) counted.resolve(message.statements);
    else up.resolve(message);
  });
  child.once("exit", (code) => up.reject(new Error(`the server ended with ${code}`)));
  const rack = {
    onCommand(_: Commanded) {},
    statements() {
      counted = Promise.withResolvers();
      child.send("statements");
      return counted.promise;
    },
    cpuSeconds: () => cpuSecondsOf(pid),
    peakMb: () => peakMbOf(pid),
    async stop() {
      await stopped(child);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  try {
    return Object.assign(rack, await up.promise);
  } catch (error) {
    await rack.stop();
    throw error;
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.disconnect();
  await ended;
}
