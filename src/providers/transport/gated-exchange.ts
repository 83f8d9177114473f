import type { IncomingMessage } from "node:http";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { bmcFailure } from "./bmc-failure.ts";
import { type Attempt, type BmcGateway, nameOf } from "./bmc-gateway.ts";
import type { AnswerReader } from "./device-answer.ts";
import type { Resource } from "./device-json.ts";
import type { Answer } from "./http-answer.ts";
import { despiteStaleConnections, type HttpExchange, type Outgoing } from "./http-exchange.ts";
import type { ListReading } from "./reading/read-list.ts";
import type { Upload } from "./upload/send-upload.ts";

export interface GatedRequest {
  readonly target: BmcTarget;
  readonly call: CallContext;
  /** For metrics and traces: `redfish.read`. */
  readonly operation: string;
  readonly method: Outgoing["method"];
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it carries the password, or what is worth as much. */
  readonly signsIn: boolean;
  readonly body?: unknown;
  /** A form in the place of a body, encoded as in an address. */
  readonly form?: string;
  /** In the place of a body; its stream is the frame then, and bounds how long it may last. */
  readonly upload?: Upload;
  /** How a large list is read. Absent: the answer is text. */
  readonly list?: ListReading;
}

export interface Fetched {
  readonly status: number;
  readonly resource: Resource;
  readonly headers: Answer["headers"];
  readonly certificateFingerprint?: string;
}

export type GatedExchange = (request: GatedRequest) => Promise<Fetched>;

export interface GatedExchangeOptions {
  readonly gateway: BmcGateway;
  readonly http: HttpExchange;
  /** How long one answer may take. */
  readonly requestTimeout: Duration;
  readonly resourceOf: AnswerReader["resourceOf"];
}

/** HTTP requests that each pass the gateway by themselves, so that each is fenced, bounded and learnt from. */
export function createGatedExchange(options: GatedExchangeOptions): GatedExchange {
  const { gateway, http, requestTimeout, resourceOf } = options;
  const once = (request: GatedRequest): Promise<Fetched> => {
    const { target, method, path, headers } = request;
    const passing = passingOf(request);
    const send = async ({ signal, span }: Pick<Attempt, "signal" | "span">): Promise<Fetched> => {
      const { upload, list } = request;
      const body = request.form === undefined ? jsonOf(request.body) : { body: request.form, contentType: FORM };
      const answer = await http.send({
        target,
        method,
        path,
        headers,
        signal,
        ...body,
        ...(upload && { upload }),
        ...(list && { list }),
      });
      span.setAttribute("http.response.status_code", answer.status);
      const { certificateFingerprint } = answer;
      return {
        status: answer.status,
        resource: resourceOf(passing, answer),
        headers: answer.headers,
        ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
      };
    };
    if (request.upload) return gateway.runStream({ ...passing, call: request.upload.stream }, send);
    return gateway.run({ ...passing, wanted: requestTimeout }, send);
  };

  return (request) => despiteStaleConnections(request, () => once(request));
}

const FORM = "application/x-www-form-urlencoded";
const jsonOf = (body: unknown) => (body === undefined ? {} : { body: JSON.stringify(body) });

export interface GatedStreamOptions extends Omit<GatedExchangeOptions, "resourceOf"> {
  readonly failureOf: AnswerReader["failureOf"];
}

/**
 * Streams that pass the gateway like any request, up to where the answer begins: signed in, judged and counted. From there on they
 * are held outside of it, so that a stream keeps no command waiting.
 */
export function createGatedStreams(options: GatedStreamOptions) {
  const { gateway, http, requestTimeout, failureOf } = options;
  return (request: GatedRequest, type: string): Promise<IncomingMessage> => {
    const { target, method, path, headers } = request;
    const passing = passingOf(request);
    return gateway.run({ ...passing, wanted: requestTimeout }, async ({ signal, span }) => {
      const answer = await http.open({ target, method, path, headers, signal }, type);
      span.setAttribute("http.response.status_code", answer.status);
      if (answer.body !== undefined) return answer.body;
      const odd = `${nameOf(target)}: ${passing.what} was answered with something that is no ${type}`;
      throw failureOf(passing, answer) ?? bmcFailure("protocol", target, odd, { status: answer.status });
    });
  };
}

function passingOf(request: GatedRequest) {
  const { target, method, path, headers } = request;
  const token = headers["x-auth-token"];
  // The query says nothing to people.
  const [place = ""] = path.split("?");
  return {
    ...request,
    ...(token === undefined ? {} : { token }),
    target,
    what: `${method} ${place}`,
    attributes: { "http.request.method": method, "url.path": place },
  };
}
