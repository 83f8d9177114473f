import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Account } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { findProcess, isRunning, type ProcessIdentity, waitForExit, workingDirectory } from "./process.ts";
import { asArguments, type Settings } from "./settings.ts";

export const DATABASE_USER = "millwright";

const READY_PATIENCE_MS = 120_000; // crash recovery of a large log takes its time
const LEFTOVERS_PATIENCE_MS = 20_000;
const FAST_STOP_PATIENCE_MS = 30_000;
const IMMEDIATE_STOP_PATIENCE_MS = 10_000;

export interface Postmaster {
  readonly process: ProcessIdentity;
  readonly socketDir: string;
}

interface PidFile {
  readonly pid: number;
  readonly socketDir: string;
  readonly ready: boolean;
}

const pidFilePath = (cluster: string) => join(cluster, "postmaster.pid");

/** PostgreSQL's own note of itself: pid, data directory, start, port, socket directory, address, shared memory, status. */
function readPidFile(cluster: string): PidFile | undefined {
  let lines: string[];
  try {
    lines = readFileSync(pidFilePath(cluster), "utf8").split("\n");
  } catch {
    return undefined;
  }
  const pid = Number(lines[0]);
  return Number.isInteger(pid) && pid > 0
    ? { pid, socketDir: lines[4] ?? "", ready: lines[7]?.trim() === "ready" }
    : undefined;
}

/**
 * The server that already runs on this cluster, if one does. Any server works in its own data directory, which tells it
 * from a stranger that was given its number.
 *
 * A note with the number of a stranger, or of a server that is dead but not yet collected by its parent, is removed:
 * PostgreSQL would take either for a running server and refuse to start. Against processes of the dead server that are
 * still at work it has another guard, their shared memory.
 */
export function findPostmaster(cluster: string): Postmaster | undefined {
  const noted = readPidFile(cluster);
  if (noted === undefined || !existsSync(`/proc/${noted.pid}`)) return undefined;
  const process = findProcess(noted.pid);
  if (process !== undefined && workingDirectory(noted.pid) === cluster) return { process, socketDir: noted.socketDir };
  rmSync(pidFilePath(cluster), { force: true });
  return undefined;
}

export interface Whereabouts {
  readonly cluster: string;
  /** What the server says before its own log is open. */
  readonly outputFile: string;
}

export interface ClusterOptions extends Whereabouts {
  readonly binaries: Binaries;
  readonly account: Account | undefined;
}

/** Creates the cluster under a draft name: a cluster with its final name was finished. */
export async function ensureCluster(options: ClusterOptions): Promise<boolean> {
  const { cluster, binaries } = options;
  if (existsSync(join(cluster, "PG_VERSION"))) return false;
  const draft = `${cluster}.draft`;
  await rm(draft, { recursive: true, force: true });
  const args = ["--pgdata", draft, "--username", DATABASE_USER, "--auth=trust", "--encoding=UTF8"];
  // PostgreSQL's own C.UTF-8: the operating system need not have that locale, and its updates cannot break indexes.
  args.push("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8");
  const child = launch(binaries.initdb, args, options);
  const code = await new Promise<number | null>((resolve, reject) => child.once("error", reject).once("exit", resolve));
  if (code !== 0) throw failedToStart("the embedded database could not be created", options);
  await rename(draft, cluster);
  return true;
}

export interface StartOptions extends ClusterOptions {
  readonly socketDir: string;
  readonly settings: Settings;
  readonly log: Log;
  readonly signal?: AbortSignal;
}

/** After a kill the old server's processes need a moment to notice; until then PostgreSQL rightly refuses to start. */
export async function startPostmaster(options: StartOptions): Promise<Postmaster> {
  const deadline = performance.now() + LEFTOVERS_PATIENCE_MS;
  for (;;) {
    try {
      return await tryStartPostmaster(options);
    } catch (error) {
      if (!/shared memory block .* still in use/s.test(messageOf(error)) || performance.now() > deadline) throw error;
    }
    options.signal?.throwIfAborted();
    options.log.warn({}, "waiting for processes of the killed database that are still there");
    await delay(100);
  }
}

/**
 * In a session of its own: a Ctrl-C in our terminal must not reach the server before our own orderly stop, and it outlives
 * us when we are killed.
 */
async function tryStartPostmaster(options: StartOptions): Promise<Postmaster> {
  const { cluster, binaries, socketDir, settings, signal } = options;
  const child = launch(binaries.postgres, ["-D", cluster, ...asArguments(settings)], options);
  await new Promise((resolve, reject) => child.once("error", reject).once("spawn", resolve));
  child.unref();
  const process = child.pid === undefined ? undefined : findProcess(child.pid);
  if (process === undefined) throw failedToStart("the embedded database ended at once", options);
  await waitUntilReady(process, options, signal).catch(async (error: unknown) => {
    await stopPostmaster(process);
    throw error;
  });
  return { process, socketDir };
}

export async function waitUntilReady(
  process: ProcessIdentity,
  where: Whereabouts,
  signal?: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + READY_PATIENCE_MS;
  for (;;) {
    signal?.throwIfAborted();
    const noted = readPidFile(where.cluster);
    if (noted?.pid === process.pid && noted.ready) return;
    if (!isRunning(process)) throw failedToStart("the embedded database ended while starting", where);
    if (performance.now() > deadline) {
      throw failedToStart(`the embedded database was not ready after ${READY_PATIENCE_MS / 1_000} s`, where);
    }
    await delay(10);
  }
}

/** Fast shutdown: sessions are ended, their transactions rolled back, and the files left clean. */
export async function stopPostmaster(process: ProcessIdentity): Promise<void> {
  sendSignal(process, "SIGINT");
  if (await waitForExit(process, FAST_STOP_PATIENCE_MS)) return;
  sendSignal(process, "SIGQUIT"); // without a checkpoint: the next start recovers from the log
  if (await waitForExit(process, IMMEDIATE_STOP_PATIENCE_MS)) return;
  throw new AppError("unavailable", `the embedded database, process ${process.pid}, does not stop`);
}

function sendSignal(target: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function launch(binary: string, args: readonly string[], { account, outputFile }: ClusterOptions) {
  rmSync(outputFile, { force: true }); // it may be root's, from another day
  const output = openSync(outputFile, "wx", 0o600);
  try {
    return spawn(binary, args, {
      detached: true,
      stdio: ["ignore", output, output],
      cwd: "/", // ours may be gone, or closed to the database's user
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" }, // nothing of ours: PG* variables and locales would leak in
      ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
    });
  } finally {
    closeSync(output);
  }
}

function failedToStart(what: string, { outputFile, cluster }: Whereabouts): AppError {
  const said = [outputFile, newestLog(cluster)]
    .flatMap(lastLines)
    .filter((line) => !/redirecting log output|HINT: .*log output/.test(line));
  const why = said.length === 0 ? "it said nothing" : said.join("\n");
  return new AppError("unavailable", `${what}: ${why}`, { next: `see ${outputFile} and ${join(cluster, "log")}` });
}

/** Once its log is open the server speaks there, and there only. */
function newestLog(cluster: string): string | undefined {
  const directory = join(cluster, "log");
  if (!existsSync(directory)) return undefined;
  const files = readdirSync(directory).map((name) => ({
    path: join(directory, name),
    at: statSync(join(directory, name)).mtimeMs,
  }));
  return files.sort((a, b) => b.at - a.at)[0]?.path;
}

function lastLines(file: string | undefined): string[] {
  if (file === undefined || !existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .slice(-4)
    .filter((line) => line !== "");
}
