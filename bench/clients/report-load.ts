import { fork } from "node:child_process";
import { once } from "node:events";

export interface Reports {
  readonly url: string;
  /** Taken in turn. */
  readonly macs: readonly string[];
  readonly milliseconds: number;
  /** So many a second, whether or not the server keeps up; absent: as many as can be, so many at once. */
  readonly perSecond?: number;
  readonly atOnce: number;
}

export interface ReportsSent {
  readonly sent: number;
  /** With 200. */
  readonly answered: number;
  /** In milliseconds from the moment that each was due, in the order of the answers. */
  readonly latencies: readonly number[];
  readonly took: number;
  /** What came instead of a 200, the first of each sort. */
  readonly failures: readonly string[];
}

export interface ReportLoad {
  send(reports: Reports): Promise<ReportsSent>;
  stop(): Promise<void>;
}

/** Nodes in a process of their own, so that what they cost is not the server's. */
export function startReportLoad(): ReportLoad {
  const clients = fork(new URL("report-clients.ts", import.meta.url), [], { serialization: "advanced" });
  const gone = new AbortController();
  clients.once("exit", (code) => gone.abort(new Error(`the nodes ended with ${code}`)));
  return {
    async send(reports) {
      const answered = once(clients, "message", { signal: gone.signal });
      clients.send(reports);
      const [sent] = (await answered) as [ReportsSent];
      return sent;
    },
    async stop() {
      const ended = once(clients, "exit");
      clients.disconnect();
      await ended;
    },
  };
}

/** Fastify alone; the address that it listens on, and how to end it. */
export async function startBareFastify(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = fork(new URL("../limits/bare-fastify.ts", import.meta.url));
  const [url] = (await once(server, "message")) as [string];
  return {
    url,
    async stop() {
      const ended = once(server, "exit");
      server.disconnect();
      await ended;
    },
  };
}
