import { readFileSync } from "node:fs";
import type { Config } from "../../config.ts";
import type { Log } from "../../kernel/log.ts";

/** For the log, the journal's reader, certificates, scripts and files that are read for a moment. */
const OWN = 200;

/** Passes that wait for slow devices are so many times those that do not. */
const WAITING = 5;

/** What devices and callers may take at the same time, a descriptor each. */
const wanted = ({ engine, limits, database }: Config): number =>
  engine.concurrency * WAITING + limits.connections + Math.ceil(database.poolSize * 1.25) + OWN;

/** Says at the start what would show under load: connections are refused then, and devices seem not to answer. */
export function checkFileLimit(config: Config, log: Log, limit: number | undefined = openFilesLimit()): void {
  if (limit === undefined || limit >= wanted(config)) return;
  const { engine, limits } = config;
  log.warn(
    {
      limit,
      wanted: wanted(config),
      "engine.concurrency": engine.concurrency,
      "limits.connections": limits.connections,
    },
    "this process may have fewer files and connections open than its settings allow: raise the limit (LimitNOFILE, ulimit -n), or lower the settings",
  );
}

/** Undefined where the system does not tell. Node has raised it as far as it may by then. */
function openFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
