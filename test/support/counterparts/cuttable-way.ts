import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a service that can be cut: what goes over it breaks off, and nobody gets through until it is mended. */
export interface CuttableWay {
  readonly port: number;
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

/** To a service at `address:port`. */
export async function openCuttableWay(endpoint: string): Promise<CuttableWay> {
  const [host = "", port = ""] = endpoint.split(":");
  const ends = new Set<Socket>();
  let isCut = false;
  const keep = (socket: Socket): Socket => {
    ends.add(socket);
    socket.on("error", () => socket.destroy()).once("close", () => ends.delete(socket));
    return socket;
  };
  const server = createServer((caller) => {
    if (isCut) return caller.destroy();
    const service = keep(connect(Number(port), host));
    keep(caller).pipe(service).pipe(caller);
    caller.once("close", () => service.destroy());
    service.once("close", () => caller.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    isCut = true;
    for (const end of ends) end.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    mend() {
      isCut = false;
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
