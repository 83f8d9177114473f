import { setTimeout as pause } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import { type BackOff, pauseBefore } from "../../kernel/time/retry.ts";
import type { MayReach } from "../transport/allowed-networks.ts";
import { type BmcGateway, keyOf, nameOf } from "../transport/bmc-gateway.ts";
import { stopped } from "../transport/bmc-lane.ts";
import { createGatedExchange, type Fetched } from "../transport/gated-exchange.ts";
import { createHttpExchange } from "../transport/http-exchange.ts";
import { resourceOf } from "./answers.ts";
import { chooseMicroversion, type Microversion } from "./microversion.ts";
import { nodePlaceOf } from "./node-place.ts";
import { signInOf } from "./sign-in.ts";

export interface IronicClientOptions {
  /** One Ironic has the care of many machines, so its lane is a wider one than a BMC's. */
  readonly gateway: BmcGateway;
  readonly caCertificates?: readonly string[];
  /** Without it, every address may be called. */
  readonly mayReach?: MayReach;
  /** False: what has no TLS is not called. */
  readonly plainHttp?: boolean;
  /** How long one answer may take: for some Ironic itself asks a BMC first. */
  readonly requestTimeout?: Duration;
  /** The pauses before trying again what a conductor's lock kept from being done. */
  readonly lockedPause?: BackOff;
}

/** Ironic's API, below one node. Every failure is a `DeviceFailure`, or a `StepFailure` when stopped. */
export interface IronicClient {
  /** `below` is what follows the node's own address, beginning with "/" or "?", or empty. */
  get(target: BmcTarget, below: string, call: CallContext): Promise<Fetched>;
  /** What stands beside the nodes: `path` begins with "/v1/". */
  getBeside(target: BmcTarget, path: string, call: CallContext): Promise<Fetched>;
  put(target: BmcTarget, below: string, body: unknown, call: CallContext): Promise<void>;
  post(target: BmcTarget, below: string, body: unknown, call: CallContext): Promise<void>;
  patch(target: BmcTarget, changes: readonly JsonPatch[], call: CallContext): Promise<void>;
  delete(target: BmcTarget, below: string, call: CallContext): Promise<void>;
  microversion(target: BmcTarget, call: CallContext): Promise<Microversion>;
  close(): void;
}

export interface JsonPatch {
  readonly op: "add" | "remove";
  readonly path: string;
  readonly value?: unknown;
}

interface Asked {
  readonly target: BmcTarget;
  readonly call: CallContext;
  readonly method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  readonly version?: Microversion;
}

const LARGEST_ANSWER = 4 * 1_024 * 1_024;
/** How often what met a lock is tried again before whoever asked is told. Locks of single commands last a second or two. */
const TRIES_AT_A_LOCK = 5;
const LOCKED_PAUSE: BackOff = { first: milliseconds(200), most: seconds(2) };
const REMEMBERED = 1_000;

export function createIronicClient(options: IronicClientOptions): IronicClient {
  const { gateway, caCertificates, mayReach, requestTimeout = seconds(10), lockedPause = LOCKED_PAUSE } = options;
  const http = createHttpExchange({
    largestAnswer: LARGEST_ANSWER,
    ...(caCertificates === undefined ? {} : { caCertificates }),
    ...(mayReach === undefined ? {} : { mayReach }),
    ...(options.plainHttp === undefined ? {} : { plainHttp: options.plainHttp }),
  });
  const versions = new LRUCache<string, Microversion>({ max: REMEMBERED });

  const exchange = createGatedExchange({ gateway, http, requestTimeout, resourceOf });

  const send = ({ version, ...asked }: Asked): Promise<Fetched> => {
    const { headers, signsIn } = signInOf(asked.target);
    const operation = asked.method === "GET" ? "ironic.read" : "ironic.command";
    const spoken = version && { "x-openstack-ironic-api-version": `1.${version.minor}` };
    return exchange({ ...asked, operation, headers: { ...headers, ...spoken }, signsIn });
  };

  async function microversion(target: BmcTarget, call: CallContext): Promise<Microversion> {
    const { root } = nodePlaceOf(target);
    const key = `${keyOf(target)}${root}`;
    const known = versions.get(key);
    if (known !== undefined) return known;
    const { resource } = await send({ target, call, method: "GET", path: `${root}/` });
    const chosen = chooseMicroversion(resource, nameOf(target));
    versions.set(key, chosen);
    return chosen;
  }

  /** With the version that both know; found out anew when the service was replaced by an older one. */
  async function withVersion(asked: Asked): Promise<Fetched> {
    try {
      return await send({ ...asked, version: await microversion(asked.target, asked.call) });
    } catch (error) {
      if (!(error instanceof DeviceFailure) || error.status !== 406) throw error;
      versions.delete(`${keyOf(asked.target)}${nodePlaceOf(asked.target).root}`);
      return send({ ...asked, version: await microversion(asked.target, asked.call) });
    }
  }

  const request = (target: BmcTarget, below: string, asked: Omit<Asked, "target" | "path">): Promise<Fetched> =>
    requestAt(target, `/v1/nodes/${nodePlaceOf(target).node}${below}`, asked);

  async function requestAt(given: BmcTarget, path: string, asked: Omit<Asked, "target" | "path">): Promise<Fetched> {
    const { root } = nodePlaceOf(given);
    const target = { ...given, noun: "Ironic" };
    for (let tries = 1; ; tries += 1) {
      try {
        return await withVersion({ ...asked, target, path: `${root}${path}` });
      } catch (error) {
        if (!(error instanceof DeviceFailure) || error.status !== 409 || tries === TRIES_AT_A_LOCK) throw error;
        await pause(pauseBefore(tries, lockedPause), undefined, { signal: asked.call.signal }).catch(() => {
          throw stopped(nameOf(target), asked.call.signal);
        });
      }
    }
  }

  return {
    get: (target, below, call) => request(target, below, { call, method: "GET" }),
    getBeside: (target, path, call) => requestAt(target, path, { call, method: "GET" }),
    async put(target, below, body, call) {
      await request(target, below, { call, method: "PUT", body });
    },
    async post(target, below, body, call) {
      await request(target, below, { call, method: "POST", body });
    },
    async patch(target, changes, call) {
      await request(target, "", { call, method: "PATCH", body: changes });
    },
    async delete(target, below, call) {
      await request(target, below, { call, method: "DELETE" });
    },
    microversion: (target, call) => microversion({ ...target, noun: "Ironic" }, call),
    close: () => http.close(),
  };
}
