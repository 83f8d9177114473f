import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { MaasTarget } from "../../capabilities/fleet/maas.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { MayReach } from "../transport/allowed-networks.ts";
import type { BmcGateway } from "../transport/bmc-gateway.ts";
import { createGatedExchange } from "../transport/gated-exchange.ts";
import { createHttpExchange } from "../transport/http-exchange.ts";
import { answerOf } from "./answers.ts";
import { parseApiKey, signedHeader } from "./sign-in.ts";

export interface MaasClientOptions {
  /** One region has the care of many machines, so its lane is a wider one than a BMC's. */
  readonly gateway: BmcGateway;
  readonly caCertificates?: readonly string[];
  /** Without it, every address may be called. */
  readonly mayReach?: MayReach;
  /** Some answers wait for a BMC. */
  readonly requestTimeout?: Duration;
  readonly clock?: Clock;
}

export type Fields = readonly (readonly [string, string])[];

const encoded = (fields: Fields) => new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value]));

export interface MaasRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below `/api/2.0/`; ends with "/". */
  readonly path: string;
  readonly op?: string;
  readonly query?: Fields;
  readonly form?: Fields;
  /** Of a list that may be very large: what is kept of each element, as they come. */
  readonly keep?: (element: unknown) => unknown;
  /** Sends no key. */
  readonly isAnonymous?: true;
}

/** The API 2.0 of a MAAS region. Every failure is a `DeviceFailure`, or a `StepFailure` when stopped. */
export interface MaasClient {
  ask(target: MaasTarget, request: MaasRequest, call: CallContext): Promise<unknown>;
  close(): void;
}

const MIB = 1_024 * 1_024;
/** Parsing stops everything else: only the list of whoever is on a network may be large. */
const LARGE = "discovery/";
const LARGEST_ANSWER = 4 * MIB;
const LARGEST_LIST = 64 * MIB;
/** A machine is listed with all of its ports and disks, some 10 kB. The list is taken apart while it comes, and never held as a whole. */
const LARGEST_STREAMED = 2_048 * MIB;
const MOST_KEPT = 200_000;

export function createMaasClient(options: MaasClientOptions): MaasClient {
  const { gateway, caCertificates, mayReach, requestTimeout = seconds(60), clock = systemClock } = options;
  const opened = [LARGEST_ANSWER, LARGEST_LIST, LARGEST_STREAMED].map((largestAnswer) => {
    const http = createHttpExchange({
      largestAnswer,
      ...(caCertificates === undefined ? {} : { caCertificates }),
      ...(mayReach === undefined ? {} : { mayReach }),
    });
    return { http, exchange: createGatedExchange({ gateway, http, requestTimeout, resourceOf: answerOf }) };
  });
  type Opened = (typeof opened)[0];
  const [small, large, streamed] = opened as [Opened, Opened, Opened];
  return {
    async ask(target, { method, path, op, query = [], form, keep, isAnonymous }, call) {
      const asked = encoded([...(op === undefined ? [] : [["op", op] as const]), ...query]);
      const { exchange } = keep ? streamed : method === "GET" && path === LARGE ? large : small;
      const { resource } = await exchange({
        target: asEndpoint(target),
        call,
        method,
        operation: method === "GET" ? "maas.read" : "maas.command",
        path: `${target.path}/api/2.0/${path}${asked.size === 0 ? "" : `?${asked}`}`,
        headers: isAnonymous ? {} : { authorization: signedHeader(target, clock.now()) },
        signsIn: isAnonymous !== true,
        ...(form && { form: encoded(form).toString() }),
        ...(keep && { list: { keep, largestElement: LARGEST_ANSWER, most: MOST_KEPT } }),
      });
      return resource.value;
    },
    close() {
      for (const { http } of opened) http.close();
    },
  };
}

/** The gateway counts rejected sign-ins by user: that is the key without its secret. */
function asEndpoint({ apiKey, ...place }: MaasTarget): BmcTarget {
  const { consumer, secret } = parseApiKey(apiKey);
  return { ...place, username: consumer, password: secret, noun: "MAAS" };
}
