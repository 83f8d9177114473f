import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../eventually.ts";
import type { DebianPostgres } from "./debian-postgres.ts";

const PROGRAM = "/usr/sbin/pgbouncer";

/** Why there is none here; empty where there is. */
export const missingPgbouncer = (): string => (existsSync(PROGRAM) ? "" : "pgbouncer");

export interface Pgbouncer {
  urlOf(database: string): string;
  close(): Promise<void>;
}

/** Debian's pgbouncer with its own settings, on a socket alone, in front of a PostgreSQL. */
export async function startPgbouncer(
  { host, owner }: DebianPostgres,
  { poolMode }: { readonly poolMode: "session" | "transaction" | "statement" },
): Promise<Pgbouncer> {
  const directory = join(host, `pgbouncer-${poolMode}`);
  await mkdir(directory);
  const files = {
    "users.txt": '"millwright" ""\n',
    "pgbouncer.ini": [
      "[databases]",
      `* = host=${host}`,
      "[pgbouncer]",
      "listen_addr =",
      `unix_socket_dir = ${directory}`,
      "auth_type = trust",
      `auth_file = ${join(directory, "users.txt")}`,
      `pool_mode = ${poolMode}`,
      "default_pool_size = 30",
      "",
    ].join("\n"),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  if (owner) await chown(directory, owner.uid, owner.gid);
  const child = spawn(PROGRAM, [join(directory, "pgbouncer.ini")], { stdio: ["ignore", "pipe", "pipe"], ...owner });
  const said = transcriptOf(child);
  await eventually(async () => existsSync(join(directory, ".s.PGSQL.6432")) || child.exitCode !== null, {
    what: "pgbouncer listens",
    seen: said,
  });
  return {
    urlOf: (database) => `postgresql://millwright@/${database}?host=${encodeURIComponent(directory)}&port=6432`,
    async close() {
      const ended = child.exitCode === null ? once(child, "exit") : undefined;
      child.kill("SIGTERM");
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function transcriptOf(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  return () => text;
}
