import type { IncomingMessage } from "node:http";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { MayReach } from "../transport/allowed-networks.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import type { BmcGateway } from "../transport/bmc-gateway.ts";
import {
  createGatedExchange,
  createGatedStreams,
  type Fetched,
  type GatedExchange,
  type GatedRequest,
} from "../transport/gated-exchange.ts";
import { createHttpExchange, type HttpExchange } from "../transport/http-exchange.ts";
import type { Upload } from "../transport/upload/send-upload.ts";
import { failureOf, resourceOf } from "./answers.ts";
import { isLocalPath, type Resource } from "./resource.ts";
import { Sessions, type SignIn } from "./sessions.ts";

export interface RedfishClientOptions {
  readonly gateway: BmcGateway;
  readonly caCertificates?: readonly string[];
  /** Without it, every address may be called. */
  readonly mayReach?: MayReach;
  /** False: what has no TLS is not called. */
  readonly plainHttp?: boolean;
  /** How long one answer may take. BMCs are slow; more than this is not an answer. */
  readonly requestTimeout?: Duration;
  readonly largestAnswer?: number;
  readonly rememberSessions?: number;
  readonly clock?: Clock;
}

/** Redfish with one BMC at a time: signs in, reads and commands. Every failure is a `DeviceFailure`, or a `StepFailure` when stopped. */
export interface RedfishClient {
  get(target: BmcTarget, path: string, call: CallContext): Promise<Fetched>;
  /** For what a BMC need not have: `undefined` where it answers 404. */
  find(target: BmcTarget, path: string, call: CallContext): Promise<Resource | undefined>;
  post(target: BmcTarget, path: string, body: Resource, call: CallContext): Promise<Fetched>;
  /** Sends what is too large for a body. A session that has ended is renewed, and all is sent once more. */
  upload(target: BmcTarget, path: string, upload: Upload): Promise<Fetched>;
  /** Without signing in, for what everybody may read. */
  getOpenly(target: BmcTarget, path: string, call: CallContext): Promise<Fetched>;
  /** Until then the BMC may be away, and reject everybody while it starts. */
  expectRestart(target: BmcTarget, until: Date): void;
  /** Changes members of a resource. */
  patch(target: BmcTarget, path: string, body: Resource, call: CallContext): Promise<void>;
  remove(target: BmcTarget, path: string, call: CallContext): Promise<void>;
  /** A stream of server-sent events, with the session that all else is sent with. It outlives the call: whoever has it ends it. */
  stream(target: BmcTarget, path: string, call: CallContext): Promise<IncomingMessage>;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/** Until its headers are there, a stream takes the place of a request: one that hangs must not keep commands waiting for long. */
const OPENS_WITHIN: Duration = seconds(5);

/** What a BMC answers that changes a resource only for those who show that they have just read it. */
const WANTS_ETAG: readonly (number | undefined)[] = [412, 428];

/** Its headers come beside those that sign in. */
type RedfishRequest = Omit<GatedRequest, "headers" | "signsIn" | "operation"> & {
  readonly operation: "redfish.read" | "redfish.command" | "redfish.upload";
  readonly headers?: GatedRequest["headers"];
};

type Addressed = Pick<RedfishRequest, "target" | "path" | "call">;

export function createRedfishClient(options: RedfishClientOptions): RedfishClient {
  const { caCertificates, mayReach } = options;
  const http = createHttpExchange({
    largestAnswer: options.largestAnswer ?? 4 * 1_024 * 1_024,
    ...(caCertificates === undefined ? {} : { caCertificates }),
    ...(mayReach === undefined ? {} : { mayReach }),
    ...(options.plainHttp === undefined ? {} : { plainHttp: options.plainHttp }),
  });
  const sending: HttpExchange = {
    ...http,
    // Within the gateway, which counts rejected credentials by how each request ends.
    send: (outgoing) => sessions.passBasic(outgoing, () => http.send(outgoing)),
    open: (outgoing, type) => sessions.passBasic(outgoing, () => http.open(outgoing, type)),
  };
  const { gateway, requestTimeout = seconds(10) } = options;
  const gated = createGatedExchange({ gateway, http: sending, requestTimeout, resourceOf });
  const openStream = createGatedStreams({ gateway, http: sending, requestTimeout: OPENS_WITHIN, failureOf });
  const exchange: GatedExchange = (asked) => gated({ ...asked, headers: { "odata-version": "4.0", ...asked.headers } });
  const sessions: Sessions = new Sessions(exchange, options.rememberSessions ?? 4_096, options.clock);

  /** A session ends when the BMC says so; then once more with a new one. */
  async function signedIn<T>({ target, path, call }: Addressed, send: (signIn: SignIn) => Promise<T>): Promise<T> {
    if (!isLocalPath(path)) {
      throw bmcFailure(
        "protocol",
        target,
        `the BMC gave a link that leads nowhere in its Redfish tree: ${path.slice(0, 100)}`,
        { disposition: "fail" },
      );
    }
    const first = await sessions.signIn(target, call);
    try {
      return await send(first);
    } catch (error) {
      if (first.signsIn || !(error instanceof DeviceFailure) || error.status !== 401) throw error;
      sessions.rejected(target, first);
      return await send(await sessions.signIn(target, call));
    }
  }

  const request = (asked: RedfishRequest): Promise<Fetched> =>
    signedIn(asked, ({ headers, signsIn }) =>
      exchange({ ...asked, headers: { ...headers, ...asked.headers }, signsIn }),
    );

  const get: RedfishClient["get"] = (target, path, call) =>
    request({ target, call, operation: "redfish.read", method: "GET", path });

  return {
    get,
    async find(target, path, call) {
      try {
        return (await get(target, path, call)).resource;
      } catch (error) {
        if (error instanceof DeviceFailure && error.status === 404) return undefined;
        throw error;
      }
    },
    post: (target, path, body, call) =>
      request({ target, call, operation: "redfish.command", method: "POST", path, body }),
    upload: (target, path, upload) =>
      request({ target, call: upload.stream, operation: "redfish.upload", method: "POST", path, upload }),
    getOpenly: (target, path, call) =>
      exchange({ target, call, operation: "redfish.read", method: "GET", path, headers: {}, signsIn: false }),
    expectRestart: (target, until) => gateway.expectRestart(target, until),
    async patch(target, path, body, call) {
      const change = { target, call, operation: "redfish.command", method: "PATCH", path, body } as const;
      try {
        await request(change);
      } catch (error) {
        if (!(error instanceof DeviceFailure) || !WANTS_ETAG.includes(error.status)) throw error;
        const { etag } = (await get(target, path, call)).headers;
        if (typeof etag !== "string") throw error;
        await request({ ...change, headers: { "if-match": etag } });
      }
    },
    async remove(target, path, call) {
      await request({ target, call, operation: "redfish.command", method: "DELETE", path });
    },
    stream: (target, path, call) =>
      signedIn({ target, path, call }, (signIn) =>
        openStream({ ...signIn, target, path, call, operation: "redfish.stream", method: "GET" }, "text/event-stream"),
      ),
    async close() {
      await sessions.close();
      http.close();
    },
  };
}
