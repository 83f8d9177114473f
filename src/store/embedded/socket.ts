import { createHash } from "node:crypto";
import { chmodSync, chownSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppError } from "../../kernel/errors.ts";
import type { Account } from "./account.ts";

export const SOCKET_PORT = 5432;

/** What the kernel takes for a socket's address, without the closing zero. */
const LONGEST_SOCKET_PATH = 107;

export const socketPath = (directory: string): string => join(directory, `.s.PGSQL.${SOCKET_PORT}`);

const fits = (directory: string): boolean => Buffer.byteLength(socketPath(directory)) <= LONGEST_SOCKET_PATH;

/**
 * Where the socket goes: in the data directory, or in a short place named after it when that path is too long for a socket.
 * As root the runtime directory is of no use, since the database's user cannot enter it.
 */
export function chooseSocketDirectory(
  dataDir: string,
  account: Account | undefined,
  runtimeDir = process.env.XDG_RUNTIME_DIR,
): string {
  const inside = join(dataDir, "socket");
  if (fits(inside)) return inside;
  const name = `millwright-${createHash("sha256").update(dataDir).digest("hex").slice(0, 16)}`;
  const places = account === undefined && runtimeDir !== undefined && runtimeDir.startsWith("/") ? [runtimeDir] : [];
  const short = [...places, tmpdir(), "/tmp"].map((place) => join(place, name)).find(fits);
  return short ?? join("/tmp", name);
}

/**
 * What a killed server left there. PostgreSQL clears it up by itself, unless the number in the note is taken again or its
 * bearer not collected yet; the caller knows that no server runs.
 */
export function removeStaleSocket(directory: string): void {
  for (const file of [socketPath(directory), `${socketPath(directory)}.lock`]) rmSync(file, { force: true });
}

/**
 * Makes the directory for its one user. The database trusts every process that reaches its socket, so this directory is the lock on
 * the door; in a place like /tmp anybody could have put it there before us.
 */
export function ensurePrivateDirectory(directory: string, account: Account | undefined): void {
  const uid = account?.uid ?? process.getuid?.() ?? -1;
  try {
    mkdirSync(directory, { mode: 0o700 });
    if (account !== undefined) chownSync(directory, account.uid, account.gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const found = lstatSync(directory);
  const takeable = found.isDirectory() && (found.uid === uid || found.uid === process.getuid?.());
  if (!takeable) {
    throw new AppError(
      "failed_precondition",
      `${directory} is needed for the database's socket, but belongs to somebody else`,
      {
        next: `remove ${directory}, or set MILLWRIGHT_DATA_DIR to a shorter path`,
      },
    );
  }
  if (account !== undefined && found.uid !== uid) chownSync(directory, account.uid, account.gid);
  chmodSync(directory, 0o700);
}
