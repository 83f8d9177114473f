import type { AddressInfo, Socket } from "node:net";
import ssh2 from "ssh2";

/** A host that lets everybody in, and writes down what it is to do. */
export interface AttackersSsh {
  readonly port: number;
  /** All that came over its sessions: commands, their environment and what was written to them. */
  received(): string;
  connections(): number;
  close(): Promise<void>;
}

export async function listenAsSshAttacker(): Promise<AttackersSsh> {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const hostKeys = [ssh2.utils.generateKeyPairSync("ed25519").private];
  const server = new ssh2.Server({ hostKeys }, (client) => {
    client.on("error", () => undefined);
    client.on("authentication", (attempt) => attempt.accept());
    client.on("ready", () =>
      client.on("session", (accept) => {
        const session = accept();
        session.on("env", (_, __, { key, val }) => seen.push(`${key}=${val}`));
        session.on("exec", (acceptExec, _, { command }) => {
          seen.push(command);
          const stream = acceptExec();
          stream.on("data", (part: Buffer) => seen.push(part.toString("utf8")));
          stream.on("end", () => {
            stream.exit(0);
            stream.end();
          });
        });
      }),
    );
  });
  server.on("connection", () => {
    connections += 1;
  });
  // The types of ssh2 do not know that its server is one of node:net.
  (server as unknown as { _srv: NodeJS.EventEmitter })._srv.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    received: () => seen.join("\n"),
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}
