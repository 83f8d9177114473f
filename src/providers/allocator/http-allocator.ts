import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { AllocationOrder, Allocator, AllocatorAnswer } from "../../capabilities/fleet/allocator.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { MayReach } from "../transport/allowed-networks.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import type { BmcGateway } from "../transport/bmc-gateway.ts";
import { createAnswerReader } from "../transport/device-answer.ts";
import { isResource, textAt } from "../transport/device-json.ts";
import { createGatedExchange } from "../transport/gated-exchange.ts";
import { excerpt, parseJson } from "../transport/http-answer.ts";
import { createHttpExchange } from "../transport/http-exchange.ts";

export interface HttpAllocatorOptions {
  /** Below it: `/allocations/{id}`. */
  readonly url: string;
  /** Sent as a bearer, and never written anywhere. */
  readonly token: string;
  readonly gateway: BmcGateway;
  readonly caCertificates?: readonly string[];
  /** Without it, every address may be called. */
  readonly mayReach?: MayReach;
  readonly requestTimeout?: Duration;
}

const LARGEST_ANSWER = 64 * 1_024;
const LONGEST_MESSAGE = 500;
const DEFAULT_PORTS = { "http:": 80, "https:": 443 } as const;

/**
 * An allocator over HTTP: `PUT {url}/allocations/{id}` says what is wanted of an allocation, and answers `{"state": "done"}` or
 * `{"state": "in_progress", "message": "…"}`. It is idempotent, and asked again until it is done.
 */
export function createHttpAllocator(options: HttpAllocatorOptions): Allocator & { close(): void } {
  const { url, token, gateway, caCertificates, mayReach, requestTimeout = seconds(10) } = options;
  const http = createHttpExchange({
    largestAnswer: LARGEST_ANSWER,
    ...(caCertificates === undefined ? {} : { caCertificates }),
    ...(mayReach === undefined ? {} : { mayReach }),
  });
  const reader = createAnswerReader({
    saidBy: (asked, { text }) => excerpt(asked, messageIn(text) || text),
    callerOf: () => ({ as: "the token of the allocator", showing: "" }),
  });
  const exchange = createGatedExchange({ gateway, http, requestTimeout, resourceOf: reader.resourceOf });
  const { target, path } = placeOf(url, token);
  const put = async (order: AllocationOrder, wanted: JsonObject, call: CallContext): Promise<AllocatorAnswer> => {
    const { id, node, hostname, tenant } = order;
    const { resource } = await exchange({
      ...{ target, call, method: "PUT", operation: "allocator.put" },
      path: `${path}/allocations/${encodeURIComponent(id)}`,
      headers: { authorization: `Bearer ${token}` },
      signsIn: true,
      body: { ...wanted, node, hostname, tenant },
    });
    const state = textAt(resource, "state");
    const message = (textAt(resource, "message") ?? "").slice(0, LONGEST_MESSAGE);
    if (state === "done" || state === "in_progress") return { state, message };
    throw bmcFailure("protocol", target, `allocator: the answer for ${id} has no state that we know`);
  };
  return {
    close: () => http.close(),
    provision: (order, call) => put(order, { wanted: "provisioned" }, call),
    async release({ force, ...order }, call) {
      try {
        return await put(order, { wanted: "released", force }, call);
      } catch (error) {
        if (error instanceof DeviceFailure && error.status === 404)
          return { state: "done", message: "the allocator does not know it" };
        throw error;
      }
    },
  };
}

function messageIn(text: string): string {
  const body = parseJson(text);
  return isResource(body) ? (textAt(body, "message") ?? "") : "";
}

function placeOf(text: string, token: string): { readonly target: BmcTarget; readonly path: string } {
  const url = new URL(text);
  const protocol = url.protocol === "http:" ? "http:" : "https:";
  return {
    path: url.pathname.replace(/\/+$/, ""),
    target: {
      address: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? DEFAULT_PORTS[protocol] : Number(url.port),
      scheme: protocol === "http:" ? "http" : "https",
      trust: { mode: "ca" },
      username: "allocator",
      password: token,
      noun: "allocator",
    },
  };
}
