import { linkSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../kernel/errors.ts";
import { isRunning, ownIdentity, type ProcessIdentity } from "./process.ts";

const LOCK_FILE = "owner.lock";
const GUARD_PATIENCE_MS = 10_000;

export interface OwnerLock {
  release(): void;
}

/**
 * Makes this process the only owner of a data directory, until `release` or its death.
 *
 * The lock file outlives a killed owner, and two successors could each take the other's fresh lock for the dead one. So
 * the file is only touched under a guard that the kernel takes back when its holder dies: an abstract socket address.
 */
export async function acquireOwnerLock(dataDir: string): Promise<OwnerLock> {
  const path = join(dataDir, LOCK_FILE);
  const guard = await takeGuard(dataDir);
  try {
    const owner = readOwner(path);
    if (owner !== undefined && isRunning(owner)) throw inUse(dataDir, owner);
    rmSync(path, { force: true });
    writeOwner(path);
  } finally {
    await new Promise((resolve) => guard.close(resolve));
  }
  return { release: () => releaseOwn(path) };
}

/** For those who would start other things first: says at once that the directory is somebody's. */
export function refuseIfOwned(dataDir: string): void {
  const owner = readOwner(join(dataDir, LOCK_FILE));
  if (owner !== undefined && isRunning(owner)) throw inUse(dataDir, owner);
}

function inUse(dataDir: string, owner: ProcessIdentity): AppError {
  const who = owner.pid === process.pid ? "this very process" : `another Millwright, process ${owner.pid}`;
  return new AppError("failed_precondition", `the data directory ${dataDir} is in use by ${who}`, {
    next: `stop that process, or set MILLWRIGHT_DATA_DIR to another directory`,
  });
}

/** A torn or foreign file names no owner: it is treated like that of a dead one. */
function readOwner(path: string): ProcessIdentity | undefined {
  try {
    const { pid, startTicks, bootId } = JSON.parse(readFileSync(path, "utf8"));
    return Number.isInteger(pid) ? { pid, startTicks, bootId } : undefined;
  } catch {
    return undefined;
  }
}

/** Linked into place, so that nobody ever reads half a lock. */
function writeOwner(path: string): void {
  const draft = `${path}.${process.pid}`;
  const startedAt = new Date().toISOString();
  writeFileSync(draft, `${JSON.stringify({ ...ownIdentity(), startedAt })}\n`, { mode: 0o644 });
  try {
    linkSync(draft, path);
  } finally {
    unlinkSync(draft);
  }
}

function releaseOwn(path: string): void {
  const owner = readOwner(path);
  if (owner?.pid === process.pid && isRunning(owner)) rmSync(path, { force: true });
}

async function takeGuard(dataDir: string): Promise<Server> {
  const { dev, ino } = await stat(dataDir);
  const address = `\0millwright-owner-${dev}-${ino}`;
  const deadline = performance.now() + GUARD_PATIENCE_MS;
  for (;;) {
    const guard = await tryListen(address);
    if (guard !== undefined) return guard;
    if (performance.now() > deadline) {
      throw new AppError(
        "unavailable",
        `another process has been opening the data directory ${dataDir} for ${GUARD_PATIENCE_MS / 1_000} s`,
      );
    }
    await delay(10);
  }
}

function tryListen(path: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen({ path }, () => resolve(server));
  });
}
