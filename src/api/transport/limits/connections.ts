import type { Server, Socket } from "node:net";
import { addressGroup } from "./client-address.ts";
import type { LimitLedger } from "./limit-ledger.ts";

export interface ConnectionRules {
  /** Of one listener. */
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Addresses that count only towards the sum: of this host, of probes, of proxies in front. */
  readonly isExempt: (address: string) => boolean;
}

/**
 * The connections of one listener.
 *
 * One address cannot have them all. When all places are taken, a newcomer gets that of the oldest connection on which nobody has signed
 * in: whoever fills the listener with connections from many addresses ends his own, and neither operators nor probes are locked out.
 */
export class Connections {
  readonly #rules: ConnectionRules;
  readonly #ledger: LimitLedger;
  readonly #byAddress = new Map<string, number>();
  readonly #open = new Map<string, Socket>();
  /** Nobody has signed in on them; the oldest first. */
  readonly #strangers = new Set<string>();

  constructor(server: Server, rules: ConnectionRules, ledger: LimitLedger) {
    this.#rules = rules;
    this.#ledger = ledger;
    ledger.show("connections", rules.connections, () => this.#open.size);
    ledger.show("connections_per_address", rules.connectionsPerAddress, () => Math.max(0, ...this.#byAddress.values()));
    // In place of the server's own listeners, which would set up a parser or a handshake also for what is refused.
    const served = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      if (!this.#admit(socket)) return void socket.resetAndDestroy();
      for (const listener of served) Reflect.apply(listener, server, [socket]);
    });
  }

  /** Somebody has signed in on the connection. */
  signedIn(socket: Socket): void {
    this.#strangers.delete(idOf(socket));
  }

  #admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return false; // it has left already
    const isExempt = this.#rules.isExempt(remoteAddress);
    const address = addressGroup(remoteAddress);
    const held = this.#byAddress.get(address) ?? 0;
    if (!isExempt && held >= this.#rules.connectionsPerAddress) {
      this.#ledger.refuse("connections_per_address", { address: remoteAddress, most: held });
      return false;
    }
    if (this.#open.size >= this.#rules.connections && !this.#makeRoom(remoteAddress) && !isExempt) return false;
    this.#keep(socket, isExempt ? undefined : address);
    return true;
  }

  /** Whether there was a stranger whose place could be taken. */
  #makeRoom(newcomer: string): boolean {
    const [oldest] = this.#strangers;
    const socket = oldest === undefined ? undefined : this.#open.get(oldest);
    const closed = socket?.remoteAddress ?? null;
    this.#ledger.refuse("connections", { newcomer, closed, most: this.#rules.connections });
    if (oldest === undefined || socket === undefined) return false;
    this.#open.delete(oldest);
    this.#strangers.delete(oldest);
    socket.resetAndDestroy();
    return true;
  }

  #keep(socket: Socket, address: string | undefined): void {
    const id = idOf(socket);
    this.#open.set(id, socket);
    if (address !== undefined) {
      this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
      this.#strangers.add(id);
    }
    socket.once("close", () => {
      if (this.#open.get(id) === socket) {
        this.#open.delete(id);
        this.#strangers.delete(id);
      }
      if (address === undefined) return;
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, left);
    });
  }
}

/** The same for a TCP connection, for the TLS in it, and for the stand-in that HTTP/2 hands out. */
const idOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
