import { createHash, randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { silentLog } from "../../src/kernel/log.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { type DebianPostgres, startDebianPostgres } from "../support/counterparts/debian-postgres.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { type Balancer, freePorts, startBalancer } from "./balancer.ts";

/** A checkout of an earlier version, with its packages, to begin with: `TRIAL_OLDER=/path npm run trial`. */
export const OLDER: string | undefined = process.env.TRIAL_OLDER;

export const REPLICAS = 3;
export const DATABASE = "millwright";
/** A run of some seconds: long enough for each fault to meet many of them. */
const SPEED = 24;
export const RACKS = 6;

export interface RunSeen {
  readonly runId: string;
  readonly machineId: string;
  readonly phase: string;
  readonly error?: { readonly message: string } | null;
}

export type Effects = Readonly<Record<string, number>>;

const LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
export const missingFaketime = (): string => (existsSync(LIBFAKETIME) ? "" : "faketime");
/** The clock of a host that nobody has set: five minutes ahead. Timers go on as they are. */
export const SKEWED = { LD_PRELOAD: LIBFAKETIME, FAKETIME: "+5m", FAKETIME_DONT_FAKE_MONOTONIC: "1" } as const;

/** A site as the production guide has it: Debian's PostgreSQL, replicas behind a load balancer, and machines that count what is done to them. */
export class Site {
  readonly bench: ProcessBench = openProcessBench();
  readonly replicas: (ServerProcess | undefined)[] = Array.from({ length: REPLICAS }, () => undefined);
  readonly firstToken = randomBytes(32).toString("hex");
  token = this.firstToken;
  postgres!: DebianPostgres;
  /** The looker-on's own. */
  db!: Database;
  simulator!: SimulatorProcess;
  balancer!: Balancer;
  machines: string[] = [];
  /** What the replicas that start from now on are given. */
  databaseUrl = "";
  #ports: readonly number[] = [];
  #configFile = "";
  /** Those that a part has used are not used by the next before all have been. */
  #next = 0;
  #requests = 0;

  static async open(): Promise<Site> {
    const site = new Site();
    site.postgres = await startDebianPostgres({ max_connections: "200" });
    await site.postgres.create(DATABASE);
    site.useDatabase(site.postgres.urlOf(DATABASE));
    site.simulator = await startSimulatorProcess(site.bench, { site: `racks=${RACKS}`, seed: 7, speed: SPEED });
    site.#ports = await freePorts(REPLICAS);
    site.#configFile = join(site.bench.directory, "millwright.yaml");
    const sha256 = createHash("sha256").update(site.firstToken).digest("hex");
    const config = { auth: { tokens: [{ name: "first-admin", roles: ["admin"], sha256 }] } };
    writeFileSync(site.#configFile, JSON.stringify(config));
    return site;
  }

  useDatabase(url: string): void {
    this.databaseUrl = url;
    this.db = openDatabase(url, { log: silentLog, applicationName: "trial" });
  }

  get keyFile(): string {
    return join(this.bench.directory, "secret-key");
  }

  /** The machines, with their credentials, as the simulator tells them. */
  async fill(checkout = ROOT): Promise<void> {
    const process = this.bench.start({
      command: join(checkout, "bin", "node"),
      args: [join(import.meta.dirname, "fill.ts"), checkout, this.databaseUrl, this.keyFile, this.simulator.controlUrl],
    });
    if ((await process.exited).code !== 0) throw new Error(`the machines are not on record\n${process.transcript()}`);
    const simulated = await this.simulator.call<{ machine_id: string }[]>("GET", "/inventory/machines");
    this.machines = simulated.map(({ machine_id }) => machine_id);
  }

  async startReplica(
    at: number,
    { checkout = ROOT, env = {} }: { checkout?: string; env?: Readonly<Record<string, string>> } = {},
  ): Promise<ServerProcess> {
    const replica = await startServerProcess(this.bench, {
      command: "serve",
      program: join(checkout, "bin", "millwright"),
      name: `replica-${at + 1}`,
      databaseUrl: this.databaseUrl,
      flags: ["--config", this.#configFile],
      env: {
        MILLWRIGHT_HTTP_LISTEN: `127.0.0.1:${this.#ports[at]}`,
        MILLWRIGHT_SECRET_KEY_FILE: this.keyFile,
        MILLWRIGHT_EXPLORER_INTERVAL: "1h",
        ...env,
      },
    });
    this.replicas[at] = replica;
    return replica;
  }

  async startAll(checkout?: string): Promise<void> {
    for (let at = 0; at < REPLICAS; at += 1) await this.startReplica(at, checkout === undefined ? {} : { checkout });
    if (this.balancer === undefined) this.balancer = await startBalancer(this.bench, this.#ports);
  }

  /** Its operator's way. */
  async stopReplica(at: number): Promise<void> {
    const replica = this.replicas[at];
    replica?.process.signal("SIGTERM");
    const exit = await replica?.process.exited;
    this.replicas[at] = undefined;
    if (exit?.code !== 0)
      throw new Error(`replica ${at + 1} ended with ${JSON.stringify(exit)}\n${replica?.process.transcript()}`);
  }

  async killReplica(at: number): Promise<void> {
    this.replicas[at]?.process.signal("SIGKILL");
    await this.replicas[at]?.process.exited;
    this.replicas[at] = undefined;
  }

  /** The command line of this version, through the load balancer. */
  async cli(...args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
    const process = this.bench.start({
      command: join(ROOT, "bin", "millwright"),
      args: [...args],
      env: {
        MILLWRIGHT_TOKEN: this.token,
        HOME: this.bench.directory,
        ...(this.balancer && { MILLWRIGHT_SERVER: this.balancer.url }),
      },
    });
    const { code } = await process.exited;
    return { code, output: process.stdout() + process.stderr() };
  }

  /** Through the load balancer; who is told to come again, or hears nothing, asks again, as any caller would. */
  async ask<T>(method: string, body: object): Promise<T> {
    let last = "";
    const answer = await eventually(
      async () => {
        const heard = await fetch(`${this.balancer.url}/${method}`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${this.token}` },
          body: JSON.stringify(body),
          signal: AbortSignal.timeout(20_000),
        });
        last = `${heard.status} ${await heard.text()}`;
        if (heard.status >= 500) this.refusals.add(saidBy(heard.status, last.slice(4)));
        return heard.status < 500 && { status: heard.status, text: last };
      },
      { what: `${method} is answered`, within: 180_000, seen: () => last },
    );
    if (answer.status !== 200) throw new Error(`${method}: ${answer.text}`);
    return JSON.parse(answer.text.slice(4)) as T;
  }

  /** What callers were told that were to come again. */
  readonly refusals = new Set<string>();

  /** Somebody who looks at the runs all the time, through the load balancer, until told otherwise. */
  async look(until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      await fetch(`${this.balancer.url}/baremetal.v1.RunService/ListRuns`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${this.token}` },
        body: JSON.stringify({ pageSize: 1 }),
        signal: AbortSignal.any([until, AbortSignal.timeout(20_000)]),
      }).then(
        async (heard) => void (heard.status === 200 || this.refusals.add(saidBy(heard.status, await heard.text()))),
        () => undefined, // nobody was there
      );
      await pause(100);
    }
  }

  /** Machines that rest since long. */
  take(count: number): string[] {
    return Array.from({ length: count }, () => this.machines[this.#next++ % this.machines.length] ?? "");
  }

  async start(machines: readonly string[], type: string): Promise<RunSeen[]> {
    this.#requests += 1;
    const batch = this.#requests;
    const begin = (machineId: string) =>
      this.ask<RunSeen>("baremetal.v1.RunService/StartRun", { requestId: `${batch} ${machineId}`, machineId, type });
    return Promise.all(machines.map(begin));
  }

  #runsNow(runs: readonly RunSeen[]): Promise<RunSeen[]> {
    return this.db.query<RunSeen>(
      `select id as "runId", machine_id as "machineId", state as phase, facts -> 'error' as error from runs where id = any($1) order by id`,
      [runs.map(({ runId }) => runId)],
    );
  }

  /** So many of them are at work. */
  async underWay(runs: readonly RunSeen[], atLeast: number): Promise<void> {
    await this.#until(runs, "are at work", (all) => all.filter(({ phase }) => phase === "RUNNING").length >= atLeast);
  }

  async ended(runs: readonly RunSeen[]): Promise<RunSeen[]> {
    return this.#until(runs, "have ended", (all) => all.every(({ phase }) => !["PENDING", "RUNNING"].includes(phase)));
  }

  async #until(runs: readonly RunSeen[], what: string, is: (all: readonly RunSeen[]) => boolean): Promise<RunSeen[]> {
    let seen: RunSeen[] = [];
    return eventually(
      async () => {
        seen = await this.#runsNow(runs);
        return is(seen) ? seen : undefined;
      },
      { what: `the runs ${what}`, within: 600_000, seen: () => JSON.stringify(tally(seen)) },
    );
  }

  /** What was done to each machine so far. Over SSH they are also only read. */
  async effects(machines: readonly string[]): Promise<Effects[]> {
    return Promise.all(
      machines.map(async (id) => {
        const { ssh_commands: _, ...done } = (await this.simulator.call<MachineTruth>("GET", `/devices/${id}`)).effects;
        return done;
      }),
    );
  }

  async close(): Promise<void> {
    await this.bench.close();
    await this.db.close();
    await this.postgres.close();
  }
}

/** The load balancer answers with a page when it has no ready replica. */
const saidBy = (status: number, text: string): string =>
  text.startsWith("{")
    ? `${status} ${(JSON.parse(text) as { message: string }).message}`
    : `${status} of the load balancer`;

/** How many runs are in which phase, with the first reason of one that failed. */
export function tally(runs: readonly RunSeen[]): Record<string, number | string> {
  const counts: Record<string, number | string> = {};
  for (const { phase } of runs) counts[phase] = Number(counts[phase] ?? 0) + 1;
  const failed = runs.find(({ error }) => error);
  return failed ? { ...counts, why: `${failed.machineId}: ${failed.error?.message}` } : counts;
}

export const since = (before: readonly Effects[], after: readonly Effects[]): Effects[] =>
  after.map((now, at) =>
    Object.fromEntries(
      Object.entries(now)
        .map(([name, count]) => [name, count - (before[at]?.[name] ?? 0)] as const)
        .filter(([, count]) => count !== 0),
    ),
  );
