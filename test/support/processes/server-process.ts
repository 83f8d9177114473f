import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createToken } from "../../../src/store/access/tokens.ts";
import type { TestDatabase } from "../database.ts";
import { type ProcessBench, ROOT, type StartedProcess } from "./process-bench.ts";
import type { InventoryRow } from "./simulator-process.ts";

export interface ServerOptions {
  readonly command: "serve" | "dev";
  /** Absent: that of the checkout. */
  readonly program?: string;
  /** Below the bench's directory; its data directory. */
  readonly name?: string;
  /** Absent: the embedded database. */
  readonly databaseUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

export interface ServerProcess {
  readonly process: StartedProcess;
  readonly dataDir: string;
  readonly httpUrl: string;
  /** `host:port`. */
  readonly grpcAddress: string;
  /** One call of the API as JSON, whatever comes of it. */
  call<T = unknown>(method: string, body: unknown, token?: string): Promise<Answer<T>>;
  /** The same, and it must succeed. */
  ask<T = unknown>(method: string, body: unknown, token: string): Promise<T>;
  get(path: string, token?: string): Promise<Answer<string>>;
}

/** The process alone, for tests of its start; it may come up, fail, or be killed. */
export function spawnServer(bench: ProcessBench, options: ServerOptions): StartedProcess {
  return bench.start({
    command: options.program ?? join(ROOT, "bin", "millwright"),
    args: [options.command, "--data-dir", dataDirOf(bench, options), ...(options.flags ?? [])],
    env: {
      MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8",
      MILLWRIGHT_EXPLORER_INTERVAL: "1s",
      ...(options.databaseUrl !== undefined && { MILLWRIGHT_DATABASE_URL: options.databaseUrl }),
      ...options.env,
    },
  });
}

export async function startServerProcess(bench: ProcessBench, options: ServerOptions): Promise<ServerProcess> {
  return whenUp(spawnServer(bench, options), dataDirOf(bench, options));
}

const dataDirOf = (bench: ProcessBench, { name = "server" }: ServerOptions) => join(bench.directory, name);

async function whenUp(process: StartedProcess, dataDir: string): Promise<ServerProcess> {
  await process.said(/ is (ready: |up, )/);
  const { http, grpc, pid } = JSON.parse(readFileSync(join(dataDir, "endpoints.json"), "utf8")) as {
    http: string;
    grpc: string;
    pid: number;
  };
  if (pid !== process.pid) throw new Error(`endpoints.json is of process ${pid}, not of ${process.pid}`);
  const call = async <T>(method: string, body: unknown, token?: string): Promise<Answer<T>> =>
    read(
      await fetch(`${http}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...authorization(token) },
        body: JSON.stringify(body),
      }),
    );
  return {
    process,
    dataDir,
    httpUrl: http,
    grpcAddress: grpc,
    call,
    async ask<T>(method: string, body: unknown, token: string) {
      const answer = await call<T>(method, body, token);
      if (answer.status !== 200) throw new Error(`${method}: ${answer.status} ${answer.text}\n${process.transcript()}`);
      return answer.body;
    },
    async get(path, token) {
      const { body: _, ...answer } = await read(await fetch(`${http}${path}`, { headers: authorization(token) }));
      return { ...answer, body: answer.text };
    },
  };
}

const authorization = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };

async function read<T>(response: Response): Promise<Answer<T>> {
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  return { status: response.status, headers: response.headers, text, body: body as T };
}

/** An administrator's token, made in the database itself: `serve` gives none out. */
export async function adminToken({ db }: TestDatabase): Promise<string> {
  return (await createToken(db, { name: "tester", roles: ["admin"], createdBy: "test" })).token;
}

/** What `dev` made for its command line. */
export const devTokenOf = ({ dataDir }: ServerProcess): string =>
  readFileSync(join(dataDir, "dev-token"), "utf8").trim();

/** Makes the expected inventory exactly these rows, as a site's operator would. */
export async function expectInventory(
  server: ServerProcess,
  token: string,
  rows: readonly InventoryRow[],
): Promise<void> {
  await server.ask(
    "forge.Forge/ReplaceAllExpectedPowerShelves",
    { expectedPowerShelves: rows.map((row) => ({ ...row, rack_id: { id: row.rack_id } })) },
    token,
  );
}
