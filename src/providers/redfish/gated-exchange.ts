import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { BmcGateway } from "../transport/bmc-gateway.ts";
import type { Answer } from "../transport/http-answer.ts";
import { despiteStaleConnections, type HttpExchange } from "../transport/http-exchange.ts";
import { resourceOf } from "./answers.ts";
import type { Resource } from "./resource.ts";

export interface GatedRequest {
  readonly target: BmcTarget;
  readonly call: CallContext;
  readonly operation: "redfish.read" | "redfish.command" | "redfish.sign_in" | "redfish.sign_out";
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent only if the resource is still the one with this ETag; some BMCs insist on it. */
  readonly ifMatch?: string;
  readonly signsIn: boolean;
  readonly body?: unknown;
}

export interface Fetched {
  readonly resource: Resource;
  readonly headers: Answer["headers"];
  readonly certificateFingerprint?: string;
}

export type GatedExchange = (request: GatedRequest) => Promise<Fetched>;

/** HTTP requests that each pass the gateway by themselves, so that each is fenced, bounded and learnt from. */
export function createGatedExchange(gateway: BmcGateway, http: HttpExchange, wanted: Duration): GatedExchange {
  const once = (request: GatedRequest): Promise<Fetched> => {
    const token = request.headers["x-auth-token"];
    const carried = { target: request.target, ...(token === undefined ? {} : { token }) };
    return gateway.run(
      {
        ...request,
        ...carried,
        what: `${request.method} ${request.path}`,
        wanted,
        attributes: { "http.request.method": request.method, "url.path": request.path },
      },
      async ({ signal, span }) => {
        const { target, method, path } = request;
        const headers = {
          "odata-version": "4.0",
          ...request.headers,
          ...(request.ifMatch === undefined ? {} : { "if-match": request.ifMatch }),
        };
        const body = request.body === undefined ? {} : { body: JSON.stringify(request.body) };
        const answer = await http.send({ target, method, path, headers, signal, ...body });
        span.setAttribute("http.response.status_code", answer.status);
        const { certificateFingerprint } = answer;
        return {
          resource: resourceOf({ ...request, ...carried }, answer),
          headers: answer.headers,
          ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
        };
      },
    );
  };

  return (request) => despiteStaleConnections(request, () => once(request));
}
