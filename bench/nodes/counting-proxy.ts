import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Between a server and its MAAS: what passes through is counted, and nothing is changed. */
export interface CountingProxy {
  readonly url: string;
  /** So far. */
  seen(): CallsSeen;
  stop(): Promise<void>;
}

export interface CallsSeen {
  readonly calls: number;
  /** The most that were under way at once. */
  readonly mostAtOnce: number;
  /** By their `op`, and those without one by their method. */
  readonly byName: ReadonlyMap<string, number>;
  /** Calls that were answered with an error, or not at all. */
  readonly failures: readonly string[];
}

export async function startCountingProxy(maasUrl: string): Promise<CountingProxy> {
  const behind = new URL(maasUrl);
  const agent = new Agent({ keepAlive: true });
  const byName = new Map<string, number>();
  const failures: string[] = [];
  let [calls, underWay, mostAtOnce] = [0, 0, 0];

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = "GET", url = "/", headers } = incoming;
    const name = new URL(url, behind).searchParams.get("op") ?? method;
    byName.set(name, (byName.get(name) ?? 0) + 1);
    calls += 1;
    underWay += 1;
    mostAtOnce = Math.max(mostAtOnce, underWay);
    outgoing.once("close", () => {
      underWay -= 1;
    });
    const { hostname, port } = behind;
    const onward = request({ agent, hostname, port, method, path: url, headers }, (answer) => {
      const { statusCode = 502 } = answer;
      if (statusCode >= 400) failures.push(`${method} ${url}: ${statusCode}`);
      outgoing.writeHead(statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    onward.once("error", (error) => {
      failures.push(`${method} ${url}: ${error.message}`);
      outgoing.destroy();
    });
    incoming.pipe(onward);
  };

  const server = createServer({ keepAlive: true }, forward);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${behind.pathname}`,
    seen: () => ({ calls, mostAtOnce, byName: new Map(byName), failures: [...failures] }),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      agent.destroy();
    },
  };
}
