import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { DatabaseConfig } from "../../../src/store/postgres/database.ts";
import type { TestDatabase } from "../database.ts";

export interface DatabaseGate {
  readonly config: Exclude<DatabaseConfig, string>;
  /** Breaks all connections, and refuses others until it is opened. */
  close(): Promise<void>;
  open(): Promise<void>;
  remove(): Promise<void>;
}

const PORT = 5432;

/** The way to a database, on a socket of its own: closing it is an outage for those who come through it, and for nobody else. */
export async function openDatabaseGate({ pgConfig }: TestDatabase): Promise<DatabaseGate> {
  const { host, port, user, database } = new pg.Client(pgConfig);
  const directory = mkdtempSync(join(tmpdir(), "millwright-gate-"));
  const socketIn = (folder: string, number: number) => join(folder, `.s.PGSQL.${number}`);
  const sockets = new Set<Socket>();
  const pipe = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on("error", () => to.destroy());
    from.on("close", () => {
      sockets.delete(from);
      to.destroy();
    });
    from.pipe(to);
  };
  let server: Server | undefined;
  const open = async () => {
    if (server !== undefined) return;
    const opened = createServer((client) => {
      const real = host.startsWith("/") ? createConnection(socketIn(host, port)) : createConnection(port, host);
      pipe(client, real);
      pipe(real, client);
    });
    await new Promise<void>((resolve) => opened.listen(socketIn(directory, PORT), resolve));
    server = opened;
  };
  const close = async () => {
    const closing = server;
    server = undefined;
    const closed = new Promise((resolve) => (closing ? closing.close(resolve) : resolve(undefined)));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  await open();
  return {
    config: { host: directory, port: PORT, user: user ?? "", database: database ?? "" },
    open,
    close,
    async remove() {
      await close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
