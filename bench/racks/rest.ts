import { setTimeout as pause } from "node:timers/promises";
import type { BenchServer } from "../bench-server.ts";
import type { RackProcess } from "./rack-process.ts";

export interface AtRest {
  /** Processors that are taken, on average. */
  readonly server: number;
  readonly database: number;
  /** A second. */
  readonly statements: number;
}

/** What a site costs that nobody works on: its devices are read, and its machines checked. */
export async function measureRest(server: BenchServer, serving: RackProcess, seconds: number): Promise<AtRest> {
  await pause(5_000); // what became ready last is looked at once
  const figures = async () => ({
    at: performance.now(),
    server: serving.cpuSeconds(),
    database: server.cpuSeconds(),
    statements: await serving.statements(),
  });
  const before = await figures();
  await pause(seconds * 1_000);
  const after = await figures();
  const lasted = (after.at - before.at) / 1_000;
  return {
    server: (after.server - before.server) / lasted,
    database: (after.database - before.database) / lasted,
    statements: (after.statements - before.statements) / lasted,
  };
}
