import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import type { ProcessBench, StartedProcess } from "../support/processes/process-bench.ts";

const PROGRAM = "/usr/sbin/haproxy";
export const missingBalancer = (): string => (existsSync(PROGRAM) ? "" : "haproxy");

export interface Balancer {
  readonly url: string;
  /** As its host goes down. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Debian's HAProxy before the replicas, as the guide has it: it asks each for `/readyz`, and sends calls to those that are ready. */
export async function startBalancer(bench: ProcessBench, replicas: readonly number[]): Promise<Balancer> {
  const [port = 0] = await freePorts(1);
  const file = join(bench.directory, "haproxy.cfg");
  const servers = replicas.map(
    (at, index) => `  server replica-${index + 1} 127.0.0.1:${at} check inter 500ms fall 1 rise 1`,
  );
  const lines = [
    "defaults",
    "  mode http",
    "  timeout connect 2s",
    "  timeout client 60s",
    "  timeout server 60s",
    "  retries 2",
    "  option redispatch",
    "frontend operators",
    `  bind 127.0.0.1:${port}`,
    "  default_backend millwright",
    "backend millwright",
    "  balance roundrobin",
    "  option httpchk GET /readyz",
    ...servers,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  let running: StartedProcess;
  const url = `http://127.0.0.1:${port}`;
  const start = async () => {
    running = bench.start({ command: PROGRAM, args: ["-db", "-f", file] });
    const answers = () =>
      fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    await eventually(answers, {
      what: "the load balancer has a ready replica",
      within: 60_000,
      seen: () => running.transcript(),
    });
  };
  await start();
  return {
    url,
    start,
    async kill() {
      running.signal("SIGKILL");
      await running.exited;
    },
  };
}

/** That nobody uses at the moment. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
