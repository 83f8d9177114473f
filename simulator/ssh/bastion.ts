import { connect } from "node:net";
import type { Connection } from "ssh2";
import { BASTION_ADDRESS } from "../site/fields.ts";

/** A jump host: it forwards connections to machines of the site, and there is nothing to be done on it itself. */
export function serveForwarding(client: Connection, mayReach: (host: string) => boolean): void {
  client.setMaxListeners(0);
  client.on("tcpip", (accept, reject, { destIP, destPort }) => {
    if (!mayReach(destIP)) return void reject();
    // From the bastion's own address: machines behind it let nobody else in.
    const socket = connect({ host: destIP, port: destPort, localAddress: BASTION_ADDRESS });
    socket.once("error", () => reject());
    socket.once("connect", () => {
      const channel = accept();
      socket.removeAllListeners("error");
      socket.on("error", () => channel.destroy());
      socket.on("close", () => channel.end());
      channel.on("error", () => socket.destroy());
      channel.on("close", () => socket.destroy());
      socket.pipe(channel).pipe(socket);
    });
    // One connection may carry many forwardings, one after the other and side by side.
    const onClose = () => socket.destroy();
    client.on("close", onClose);
    socket.once("close", () => client.off("close", onClose));
  });
  client.on("session", (accept) => {
    const session = accept();
    session.on("exec", (acceptExec) => {
      const channel = acceptExec();
      channel.stderr.write("This host only forwards connections.\n");
      channel.exit(1);
      channel.end();
    });
  });
}
