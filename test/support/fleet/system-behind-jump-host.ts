import { connect, type Server } from "node:net";
import type { AuthContext, Connection } from "ssh2";
import ssh2 from "ssh2";

/** Of two hundred keys that ssh2 makes, it cannot read one itself. */
export function aKeyPair(): { readonly private: string; readonly public: string } {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}

export interface SystemBehindJumpHost {
  readonly jump: { readonly endpoint: string; readonly hostKey: string };
  /** What the system shows. */
  readonly hostKey: string;
  /** Where callers wanted the jump host to take them, and as whom they signed in there: `ops to 10.0.0.1:22`. */
  readonly ways: readonly string[];
  close(): void;
}

/** A jump host that takes everybody to one system, whichever address they name; the system hands each script to `onScript`, and says that all is well. */
export async function openSystemBehindJumpHost(
  onScript: (script: string) => Promise<void>,
): Promise<SystemBehindJumpHost> {
  const keys = { system: aKeyPair(), jump: aKeyPair() };
  const ways: string[] = [];
  const open = new Set<Connection>();
  const listen = async (hostKey: string, serve: (client: Connection, user: string) => void) => {
    const server = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
      open.add(client);
      let user = "";
      client.on("error", () => undefined);
      client.on("authentication", (context: AuthContext) => {
        user = context.username;
        if (context.method === "publickey") context.accept();
        else context.reject(["publickey"]);
      });
      client.on("ready", () => serve(client, user));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { server: server as unknown as Server, port: (server.address() as { port: number }).port };
  };
  const system = await listen(keys.system.private, (client) => {
    client.on("session", (accept) => {
      accept().on("exec", (begin) => {
        const channel = begin();
        let script = "";
        channel.on("data", (chunk: Buffer) => {
          script += chunk.toString("utf8");
        });
        channel.on("end", () => {
          void onScript(script).then(() => {
            channel.exit(0);
            channel.end();
          });
        });
      });
    });
  });
  const jump = await listen(keys.jump.private, (client, user) => {
    client.on("tcpip", (accept, _, { destIP, destPort }) => {
      ways.push(`${user} to ${destIP}:${destPort}`);
      const socket = connect(system.port, "127.0.0.1");
      const channel = accept();
      socket.on("error", () => channel.destroy());
      channel.on("error", () => socket.destroy());
      socket.pipe(channel).pipe(socket);
    });
  });
  return {
    jump: { endpoint: `127.0.0.1:${jump.port}`, hostKey: keys.jump.public },
    hostKey: keys.system.public,
    ways,
    close() {
      for (const client of open) client.end();
      system.server.close();
      jump.server.close();
    },
  };
}
