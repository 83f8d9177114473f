import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { MachineService } from "../../contract/baremetal/v1/baremetal_pb.js";

export interface EchoServer {
  readonly address: string;
  stop(): Promise<void>;
}

/** Connect alone: answers GetMachine with the id that it was asked for, out of nothing. No server built on it can be faster. */
export async function startEchoServer(): Promise<EchoServer> {
  const server: Http2Server = createServer(
    connectNodeAdapter({
      routes: (router) =>
        router.service(MachineService, { getMachine: ({ machineId }: { machineId: string }) => ({ machineId }) }),
    }),
  );
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        for (const session of sessions) session.destroy();
        server.close(() => resolve());
      }),
  };
}
