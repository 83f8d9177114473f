import type { Server } from "node:net";

/** The port that the server got. A port that is taken is named, since port 0 is only asked for on the first start. */
export async function listen(
  server: Server,
  options: { host: string; port: number; flag?: string | undefined },
): Promise<number> {
  const { host, port, flag } = options;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ host, port, backlog: 4_096 }, resolve);
  try {
    await promise;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    const choice = flag === undefined ? "" : `, or choose another port with ${flag}`;
    throw new Error(`port ${port} is taken; stop what listens there${choice}`, { cause: error });
  } finally {
    server.off("error", reject);
  }
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error(`no port on ${host}`);
  return address.port;
}
