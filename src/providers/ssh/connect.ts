import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import type { Client, ConnectConfig } from "ssh2";
import ssh2 from "ssh2";
import type { CallContext } from "../../capabilities/call.ts";
import { type DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import { fingerprintOf } from "../../capabilities/host-key.ts";
import type { SshCredentials, SshTarget } from "../../capabilities/ssh-target.ts";
import type { Peer } from "../../kernel/causes.ts";
import { messageOf, StepFailure } from "../../kernel/errors.ts";
import { type Duration, describeDuration, seconds } from "../../kernel/time/duration.ts";
import { allowedAddress } from "../transport/allowed-networks.ts";
import { ownTrouble } from "../transport/own-trouble.ts";
import { describeHostKey, isPinnedKey } from "./host-key.ts";

/** An open way to a machine, over as many hosts as it takes. */
export interface SshConnection {
  readonly client: Client;
  /** What the machine showed: type and key. */
  readonly hostKey: string;
  /** Resolves once it is broken or closed. */
  readonly closed: Promise<void>;
  readonly isOpen: boolean;
  close(): void;
}

export interface ConnectOptions {
  /** For each host on the way. */
  readonly connectTimeout: Duration;
  /** Whether this address may be called at all; told for the first host on the way. */
  readonly mayReach?: ((address: string) => boolean) | undefined;
}

interface Hop {
  readonly address: string;
  readonly port: number;
  readonly username: string;
  readonly hostKey: string | null;
  /** A host on the way, and not the machine itself: another key of it is accepted elsewhere. */
  readonly isJump?: true;
}

/** Where to sign in: at a machine, or at the last host before one. */
export type Destination = SshTarget & Pick<Hop, "isJump">;

const KEEPALIVE = seconds(10);
const KEEPALIVES_MISSED = 3;

export const nameOfHost = ({ address, port }: { readonly address: string; readonly port: number }): string =>
  `SSH ${addressOf({ address, port })}`;

export const addressOf = ({ address, port }: { readonly address: string; readonly port: number }): string =>
  `${address.includes(":") ? `[${address}]` : address}:${port}`;

const peerOf = ({ isJump }: Pick<Hop, "isJump">): Peer => (isJump ? "jump_host" : "ssh");

/** Work with one host on the way, or with the machine at its end, failed. */
const hostFailure = (
  code: DeviceCause,
  hop: Hop,
  message: string,
  { cause, ...facts }: { cause?: unknown; expected?: string; shown?: string } = {},
): DeviceFailure =>
  new DeviceFailure(code, peerOf(hop), message, { cause, facts: { address: addressOf(hop), ...facts } });

/** Signs in there, one host after the other; what was opened on the way is closed when a later one fails. */
export async function connectTo(
  target: Destination,
  call: CallContext,
  options: ConnectOptions,
): Promise<SshConnection> {
  if (target.hostKey === null && "password" in target.credentials) {
    throw new StepFailure(
      "host_key_unknown",
      `${nameOfHost(target)}: its host key is not known, and a password is not sent to a host that has not proved who it is. Pin its host key, or sign in with a private key`,
      {
        facts: { at: "ssh", address: addressOf(target) },
      },
    );
  }
  const hops: readonly Hop[] = [...target.jumpHosts.map((jump) => ({ ...jump, isJump: true as const })), target];
  const host = await firstAddress(hops[0] ?? target, options);
  const clients: Client[] = [];
  const closeAll = () => {
    for (const client of clients.toReversed()) client.destroy();
  };
  try {
    let way: Duplex | undefined;
    let hostKey = "";
    for (const [index, hop] of hops.entries()) {
      const client = newClient();
      clients.push(client);
      hostKey = await signIn(client, hop, { host, way, credentials: target.credentials, call, options });
      const next = hops[index + 1];
      if (next !== undefined) way = await forward(client, hop, next, call, options);
    }
    return openConnection(clients, hostKey, closeAll);
  } catch (error) {
    closeAll();
    throw error;
  }
}

/**
 * The key that the machine shows now, whatever is pinned, and proves to have. It is left before anything of ours is sent to it.
 *
 * @param through An open way to the last jump host, where there is one.
 */
export async function lookAtHostKey(
  target: SshTarget,
  through: SshConnection | undefined,
  call: CallContext,
  options: ConnectOptions,
): Promise<string> {
  const last = target.jumpHosts.at(-1);
  if (last === undefined || through === undefined) {
    const host = await firstAddress(target, options);
    return keyShownBy(target, { host, way: undefined, call, options });
  }
  const channel = await forward(through.client, last, target, call, options);
  return keyShownBy(target, { host: target.address, way: channel, call, options });
}

async function keyShownBy(hop: Hop, through: Pick<SigningIn, "host" | "way" | "call" | "options">): Promise<string> {
  const client = newClient();
  try {
    return await signIn(client, hop, { ...through, credentials: undefined });
  } finally {
    client.destroy();
    through.way?.destroy(); // of which the client knows nothing if it never came to connect
  }
}

function newClient(): Client {
  const client = new ssh2.Client();
  // Those who wait listen for themselves; an error that comes after they have left is no event.
  client.on("error", () => undefined);
  // As many as look through the same jump host at the same time.
  client.setMaxListeners(0);
  return client;
}

/** The very address that was judged: a name could lead elsewhere by the time of the connection. */
async function firstAddress(
  hop: Pick<Hop, "address" | "port" | "isJump">,
  { mayReach }: ConnectOptions,
): Promise<string> {
  if (mayReach && isIP(hop.address) !== 0 && !mayReach(hop.address)) {
    throw new StepFailure("address_not_allowed", `${nameOfHost(hop)} is outside of the networks that may be called`, {
      disposition: "fail",
      facts: { at: peerOf(hop), address: addressOf(hop) },
    });
  }
  return allowedAddress(hop.address, mayReach, { at: peerOf(hop), name: "SSH" });
}

function openConnection(clients: readonly Client[], hostKey: string, closeAll: () => void): SshConnection {
  const client = clients.at(-1);
  if (client === undefined) throw new Error("a way without a host");
  let isOpen = true;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  for (const each of clients) {
    each.once("close", () => {
      isOpen = false;
      closeAll();
      resolve();
    });
  }
  return {
    client,
    hostKey,
    closed,
    get isOpen() {
      return isOpen;
    },
    close: closeAll,
  };
}

interface SigningIn {
  /** Where to connect when there is no way yet. */
  readonly host: string;
  readonly way: Duplex | undefined;
  /** None: only the host's key is wanted, and it is left as soon as it has shown it. */
  readonly credentials: SshCredentials | undefined;
  readonly call: CallContext;
  readonly options: ConnectOptions;
}

/** Resolves with the host's key once it is proved and has accepted us. */
function signIn(client: Client, hop: Hop, { host, way, credentials, call, options }: SigningIn): Promise<string> {
  const deadline = call.mayTouchDevice(options.connectTimeout);
  let shown: Buffer | undefined;
  let refusedKey = false;
  const config: ConnectConfig = {
    username: hop.username,
    ...credentials,
    // The timer of the promise below covers all of it, also a host that accepts and then says nothing.
    readyTimeout: 0,
    keepaliveInterval: KEEPALIVE,
    keepaliveCountMax: KEEPALIVES_MISSED,
    hostVerifier: (key: Buffer) => {
      shown = key;
      refusedKey = credentials !== undefined && hop.hostKey !== null && !isPinnedKey(hop.hostKey, key);
      return !refusedKey;
    },
    ...(way === undefined ? { host, port: hop.port } : { sock: way }),
  };
  return settleWithin<string>({ host: hop, what: "signing in", deadline, call }, (resolve, reject) => {
    const done = () => resolve(shown === undefined ? "" : describeHostKey(shown));
    client.once("ready", done);
    // A key is shown before it is proved; once the keys are exchanged, whoever answers has it. Nobody signs in.
    if (credentials === undefined) client.once("handshake", done);
    client.once("error", (error) =>
      reject(refusedKey && shown !== undefined ? wrongHostKey(hop, shown) : connectFailure(hop, error)),
    );
    client.once("close", () => reject(unreachable(hop, "it closed the connection")));
    try {
      client.connect(config);
    } catch (error) {
      // Only a key that cannot be read gets here; what it says may not be repeated, since it may quote the key.
      reject(
        new StepFailure("credentials_missing", `${nameOfHost(hop)}: the private key to sign in with cannot be read`, {
          cause: error,
          facts: { at: peerOf(hop) },
        }),
      );
    }
  });
}

function forward(client: Client, hop: Hop, next: Hop, call: CallContext, options: ConnectOptions): Promise<Duplex> {
  const deadline = call.mayTouchDevice(options.connectTimeout);
  const what = `forwarding to ${next.address}:${next.port}`;
  const discard = (channel: Duplex) => void channel.destroy();
  return settleWithin<Duplex>({ host: hop, what, deadline, call, discard }, (resolve, reject) => {
    const onClose = () => reject(unreachable(hop, "it closed the connection"));
    client.once("close", onClose);
    const noWay = (error: unknown) =>
      reject(unreachable(next, `jump host ${hop.address}:${hop.port} does not get through: ${messageOf(error)}`));
    try {
      client.forwardOut("127.0.0.1", 0, next.address, next.port, (error, channel) => {
        client.off("close", onClose); // the way may serve many more
        if (error === undefined) resolve(channel);
        else noWay(error);
      });
    } catch (error) {
      // Thrown once the jump host has hung up and the connection is not closed yet.
      client.off("close", onClose);
      noWay(error);
    }
  });
}

export interface Within<T> {
  readonly host: Pick<Hop, "address" | "port" | "isJump">;
  readonly what: string;
  readonly deadline: Duration;
  readonly call: CallContext;
  /** What comes when nobody waits for it any more. */
  readonly discard?: (value: T) => void;
}

/** Ends with the work, at the deadline, or when the caller stops; whichever is first. */
export function settleWithin<T>(
  { host, what, deadline, call, discard }: Within<T>,
  work: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const name = nameOfHost(host);
    let isOver = false;
    const end = () => {
      isOver = true;
      clearTimeout(timer);
      call.signal.removeEventListener("abort", stopped);
    };
    const fail = (error: Error) => {
      end();
      reject(error);
    };
    const stopped = () =>
      fail(new StepFailure("stopped", `work on ${name} was stopped before it answered`, { cause: call.signal.reason }));
    const late = () =>
      fail(
        new DeviceFailure(
          "timed_out",
          peerOf(host),
          `${name} did not answer ${what} within ${describeDuration(deadline)}`,
          {
            facts: { address: addressOf(host) },
          },
        ),
      );
    const timer = setTimeout(late, deadline);
    if (call.signal.aborted) return stopped();
    call.signal.addEventListener("abort", stopped, { once: true });
    try {
      work((value) => {
        if (isOver) return discard?.(value);
        end();
        resolve(value);
      }, fail);
    } catch (error) {
      fail(error instanceof Error ? error : new Error(messageOf(error)));
    }
  });
}

const unreachable = (hop: Hop, why: string): DeviceFailure =>
  hostFailure("unreachable", hop, `${nameOfHost(hop)} cannot be reached: ${why}`);

function connectFailure(hop: Hop, error: Error & { readonly level?: string }): StepFailure {
  const own = ownTrouble(error);
  if (own) return own;
  if (error.level === "client-authentication") {
    const message = `wrong credentials: ${nameOfHost(hop)} does not accept user ${hop.username} with the given key or password`;
    return hostFailure("credentials_rejected", hop, message, { cause: error });
  }
  if (error.level === "client-socket") return unreachable(hop, messageOf(error));
  return hostFailure("unreachable", hop, `${nameOfHost(hop)} cannot be reached: ${messageOf(error)}`, {
    cause: error,
  });
}

/** Never tried again by itself: either the host was installed anew behind our back, or somebody sits in between. */
function wrongHostKey(hop: Hop, shown: Buffer): DeviceFailure {
  const [who, remedy] = hop.isJump
    ? ["jump host ", "give the machine the new key of this jump host (machine register --file)"]
    : ["", "pin the new one (machine update --ssh-host-key)"];
  const facts = { shown: fingerprintOf(shown), expected: fingerprintOf(hop.hostKey ?? "") };
  return hostFailure(
    "host_key_changed",
    hop,
    `${who}${nameOfHost(hop)} shows host key ${facts.shown}, but ${facts.expected} is pinned: either it was installed again, or something else answers at its address. Check it there (ssh-keygen -l), then ${remedy}`,
    facts,
  );
}
