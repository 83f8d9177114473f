import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Server } from "node:net";

const LOWEST_PORT = 20_000;
const KERNEL_PORTS = "/proc/sys/net/ipv4/ip_local_port_range";
/** So many of a few thousand are not taken by others. */
const MOST_TRIES = 100;

/** The port that the server got. A port that is taken is named, since port 0 is only asked for on the first start. */
export async function listen(
  server: Server,
  options: { host: string; port: number; flag?: string | undefined },
): Promise<number> {
  const { host, port, flag } = options;
  if (port === 0) return listenSomewhere(server, host);
  const taken = await tryToListen(server, host, port);
  if (taken === undefined) return port;
  const choice = flag === undefined ? "" : `, or choose another port with ${flag}`;
  throw new Error(`port ${port} is taken; stop what listens there${choice}`, { cause: taken });
}

/**
 * The next start needs the same port again. One that the kernel gives out would be given to somebody else as soon as this process is
 * down: to any server that asks for port 0, to any connection.
 */
async function listenSomewhere(server: Server, host: string): Promise<number> {
  const end = firstKernelPort();
  for (let tries = 0; end > LOWEST_PORT && tries < MOST_TRIES; tries += 1) {
    const port = randomInt(LOWEST_PORT, end);
    if ((await tryToListen(server, host, port)) === undefined) return port;
  }
  await tryToListen(server, host, 0);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error(`no port on ${host}`);
  return address.port;
}

/** What keeps us from a port that is taken. */
async function tryToListen(server: Server, host: string, port: number): Promise<Error | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ host, port, backlog: 4_096 }, resolve);
  try {
    await promise;
    return undefined;
  } catch (error) {
    server.off("listening", resolve);
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return error as Error;
  } finally {
    server.off("error", reject);
  }
}

/** The lowest port that the kernel gives out by itself; where it does not say, none is known to be ours to choose. */
function firstKernelPort(): number {
  try {
    return Number(readFileSync(KERNEL_PORTS, "utf8").split(/\s+/)[0]);
  } catch {
    return 0;
  }
}
