import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../eventually.ts";

const run = promisify(execFile);
const LIBRARY = "/usr/lib/postgresql";
const asRoot = process.getuid?.() === 0;

/** Why there is none here; empty where there is. */
export const missingPostgres = (): string => (existsSync(LIBRARY) ? "" : "postgresql");

/** Follows another, and knows all that was committed there. */
export interface Standby {
  /** The directory of its socket. */
  readonly host: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  promote(): Promise<void>;
  close(): Promise<void>;
}

/** A PostgreSQL as Debian packs it, with its own tools, on a socket alone. */
export interface DebianPostgres {
  /** The directory of its socket. */
  readonly host: string;
  /** Whose processes it has; absent: ours. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
  /** From then on nothing is committed here before the standby has it. */
  addStandby(): Promise<Standby>;
  urlOf(database: string): string;
  create(database: string, owner?: string): Promise<void>;
  drop(database: string): Promise<void>;
  /** One statement, as the superuser. */
  sql(database: string, statement: string): Promise<string>;
  dump(database: string): Promise<string>;
  /** Into an empty database. */
  restore(file: string, database: string): Promise<void>;
  /** immediate: as the power goes. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  /** The data directory as it is, to be put back later: what a storage snapshot is. Only while it is stopped. */
  snapshot(): Promise<void>;
  backToSnapshot(): Promise<void>;
  close(): Promise<void>;
}

export async function startDebianPostgres(settings: Readonly<Record<string, string>> = {}): Promise<DebianPostgres> {
  const version = (await readdir(LIBRARY)).toSorted((a, b) => Number(b) - Number(a))[0] ?? "";
  const bin = (name: string) => join(LIBRARY, version, "bin", name);
  const directory = await mkdtemp(join(tmpdir(), "millwright-debian-"));
  const data = join(directory, "data");
  await chmod(directory, 0o711);
  const owner = await ownerOf();
  if (owner) await chown(directory, owner.uid, owner.gid);
  const asOwner = (command: string, args: readonly string[]) =>
    run(command, [...args], { maxBuffer: 64 << 20, cwd: directory, ...(owner && { uid: owner.uid, gid: owner.gid }) });
  const asAdmin = (tool: string, args: readonly string[]) =>
    asOwner(bin(tool), ["-h", directory, "-U", "admin", ...args]);
  await asOwner(bin("initdb"), [
    "-D",
    data,
    "-U",
    "admin",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C.UTF-8",
    "--no-sync",
  ]);
  const options = Object.entries({ listen_addresses: "", unix_socket_directories: directory, ...settings });
  const start = async () => {
    const words = options.map(([name, value]) => `-c ${name}='${value}'`).join(" ");
    await asOwner(bin("pg_ctl"), ["-D", data, "-w", "-l", join(directory, "log"), "-o", words, "start"]);
  };
  const stop = async (mode: "fast" | "immediate") => {
    await asOwner(bin("pg_ctl"), ["-D", data, "-w", "-m", mode, "stop"]);
  };
  await start();
  let dumps = 0;
  const addStandby = async (): Promise<Standby> => {
    const host = join(directory, "standby");
    await asOwner("mkdir", [host]);
    const copy = join(host, "data");
    await asOwner(bin("pg_basebackup"), ["-h", directory, "-U", "admin", "-D", copy, "-R", "-c", "fast"]);
    const control = (...words: string[]) => asOwner(bin("pg_ctl"), ["-D", copy, "-w", ...words]);
    const sockets = `-c listen_addresses='' -c unix_socket_directories='${host}'`;
    const startCopy = async () => void (await control("-l", join(host, "log"), "-o", sockets, "start"));
    await startCopy();
    const ask = async (statement: string) =>
      (await asAdmin("psql", ["-d", "postgres", "-At", "-c", statement])).stdout.trim();
    await ask("alter system set synchronous_standby_names = '*'");
    // Started with it, so that there is no moment in which some of its processes know of it, and others do not.
    await stop("fast");
    await start();
    await eventually(async () => (await ask("select sync_state from pg_stat_replication")) === "sync", {
      what: "the standby follows in step",
    });
    // It has no standby of its own to wait for.
    const promote = async () => {
      await control("promote");
      for (const statement of ["alter system reset synchronous_standby_names", "select pg_reload_conf()"])
        await asOwner(bin("psql"), ["-h", host, "-U", "admin", "-d", "postgres", "-c", statement]);
    };
    return {
      host,
      start: startCopy,
      stop: async () => void (await control("-m", "fast", "stop")),
      promote,
      close: async () => void (await control("-m", "immediate", "stop").catch(() => undefined)),
    };
  };
  return {
    host: directory,
    owner,
    addStandby,
    urlOf: (database) => `postgresql://millwright@/${database}?host=${encodeURIComponent(directory)}`,
    async create(database) {
      await asAdmin("psql", [
        "-d",
        "postgres",
        "-c",
        "do $$ begin create role millwright login; exception when duplicate_object then null; end $$",
      ]);
      await asAdmin("createdb", ["-O", "millwright", database]);
    },
    drop: async (database) => void (await asAdmin("dropdb", ["--force", "--if-exists", database])),
    sql: async (database, statement) => (await asAdmin("psql", ["-d", database, "-At", "-c", statement])).stdout.trim(),
    async dump(database) {
      dumps += 1;
      const file = join(directory, `${database}-${dumps}.dump`);
      await asAdmin("pg_dump", ["-Fc", "-f", file, database]);
      return file;
    },
    restore: async (file, database) =>
      void (await asAdmin("pg_restore", ["--no-owner", "--role", "millwright", "-d", database, file])),
    stop,
    start,
    snapshot: async () => void (await asOwner("cp", ["-a", data, `${data}.snapshot`])),
    async backToSnapshot() {
      await rm(data, { recursive: true });
      await asOwner("cp", ["-a", `${data}.snapshot`, data]);
    },
    async close() {
      await stop("immediate").catch(() => undefined);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function ownerOf(): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  if (!asRoot) return undefined;
  const [uid, gid] = await Promise.all(
    ["-u", "-g"].map(async (flag) => Number((await run("id", [flag, "postgres"])).stdout)),
  );
  return { uid: uid ?? 0, gid: gid ?? 0 };
}
