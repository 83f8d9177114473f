import { timingSafeEqual } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import type { AuthContext, Connection, ParsedKey } from "ssh2";
import ssh2 from "ssh2";
import type { Machine } from "../devices/machine.ts";
import type { FaultBook } from "../faults/fault-book.ts";
import type { ShellSurroundings } from "../shell/shell-session.ts";
import { BASTION_ADDRESS } from "../site/fields.ts";
import { serveForwarding } from "./bastion.ts";
import { serveCommands } from "./command-channel.ts";
import type { SshKey } from "./ed25519-key.ts";
import type { SiteKeys } from "./site-keys.ts";

export interface SshListenerOptions {
  readonly machineAt: (address: string) => Machine | undefined;
  readonly keys: SiteKeys;
  readonly faults: FaultBook;
  readonly surroundings: ShellSurroundings;
  readonly log: (line: string) => void;
}

/** How often an open connection is checked against the machine behind it. Real time. */
const WATCH_EVERY_MS = 50;
const MACHINE_USERS = ["root", "ubuntu"];
const BASTION_USERS = ["jump", "root", "ubuntu"];

/**
 * One listener in front of all SSH servers of the site: the address that the client connected to says which machine it
 * means. A machine answers while its operating system is up and only then; otherwise the connection is reset, which is as
 * near as a shared listener comes to a refusal.
 */
export function createSshListener(options: SshListenerOptions): Server & { closeAllConnections(): void } {
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {}); // A client that goes away is no event.
    try {
      admit(socket, options);
    } catch (error) {
      options.log(`ssh: ${error instanceof Error ? error.stack : String(error)}`);
      socket.destroy();
    }
  });
  return Object.assign(server, {
    closeAllConnections() {
      for (const socket of open) socket.destroy();
    },
  });
}

function admit(socket: Socket, options: SshListenerOptions): void {
  const { machineAt, keys, faults } = options;
  const address = socket.localAddress ?? "";
  if (address === BASTION_ADDRESS) {
    const allowed = { users: BASTION_USERS, password: undefined };
    converse(socket, keys.bastionHost, allowed, options, (client) =>
      serveForwarding(client, (host) => machineAt(host) !== undefined),
    );
    return;
  }
  const machine = address.startsWith("127.") ? machineAt(address) : undefined;
  const bootId = machine?.upBootId;
  if (machine === undefined || bootId === undefined) return void socket.resetAndDestroy();
  if (machine.spec.behindBastion && socket.remoteAddress !== BASTION_ADDRESS) return void socket.resetAndDestroy();
  const occasion = { device: machine.spec.id };
  if (faults.strike("ssh_refused", occasion) !== undefined) return void socket.resetAndDestroy();
  watch(socket, machine, bootId);
  // Reads on, so that it sees the client go; and says nothing.
  if (faults.strike("ssh_hang", occasion) !== undefined) return void socket.resume();
  const hostKey =
    faults.strike("wrong_host_key", occasion) === undefined ? keys.hostKey(machine) : keys.impostorKey(machine);
  const allowed = { users: MACHINE_USERS, password: machine.spec.sshPassword };
  converse(socket, hostKey, allowed, options, (client, user) =>
    serveCommands(client, { machine, user, surroundings: options.surroundings, log: options.log }),
  );
}

/** A machine that goes down, or away from an address, takes its connections along, without a word. */
function watch(socket: Socket, machine: Machine, bootId: string): void {
  const address = socket.localAddress ?? "";
  const timer = setInterval(() => {
    if (machine.upBootId !== bootId || !machine.addresses.includes(address)) socket.destroy();
  }, WATCH_EVERY_MS);
  timer.unref();
  socket.on("close", () => clearInterval(timer));
}

function converse(
  socket: Socket,
  hostKey: SshKey,
  allowed: { readonly users: readonly string[]; readonly password: string | undefined },
  { keys, log }: SshListenerOptions,
  serve: (client: Connection, user: string) => void,
): void {
  const server = new ssh2.Server({ hostKeys: [hostKey.privateKey], ident: "OpenSSH_8.9p1_simulated" });
  server.on("connection", (client: Connection) => {
    let user = "";
    client.on("error", () => {}); // Protocol errors of a client that hung up in the middle.
    client.on("authentication", (context) => {
      user = context.username;
      if (allowed.users.includes(user) && isProven(context, keys.operator, allowed.password)) context.accept();
      else context.reject(allowed.password === undefined ? ["publickey"] : ["publickey", "password"]);
    });
    client.on("ready", () => serve(client, user));
  });
  server.on("error", (error: Error) => log(`ssh: ${error.message}`));
  server.injectSocket(socket);
}

function isProven(context: AuthContext, operator: SshKey, password: string | undefined): boolean {
  if (context.method === "password") return password !== undefined && same(context.password, password);
  if (context.method !== "publickey") return false;
  const known = ssh2.utils.parseKey(operator.publicKey) as ParsedKey;
  if (!context.key.data.equals(known.getPublicSSH())) return false;
  // Without a signature the client only asks whether this key would do.
  if (context.signature === undefined || context.blob === undefined) return true;
  return known.verify(context.blob, context.signature, context.hashAlgo) === true;
}

function same(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
