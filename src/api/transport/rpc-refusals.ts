import type { IncomingMessage, ServerResponse } from "node:http";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { AppError } from "../../kernel/errors.ts";
import { toConnectError } from "./error-codes.ts";

/**
 * The RPC library refuses what is no call at all (another method, another media type) with a status alone. Whoever tries a call with
 * curl for the first time meets exactly these, so they say what is wanted, in the shape of all other errors.
 */
export function explainRefusals(request: IncomingMessage, response: ServerResponse): void {
  if (!RPC_PATH.test(request.url ?? "")) return;
  const { writeHead } = response;
  response.writeHead = (status: number, ...rest: unknown[]) => {
    response.writeHead = writeHead;
    const refusal = refusalOf(status, request);
    if (refusal === undefined) return Reflect.apply(writeHead, response, [status, ...rest]) as ServerResponse;
    const body = JSON.stringify(
      errorToJson(
        toConnectError(refusal, "millwright", () => ""),
        undefined,
      ),
    );
    const headers = { ...(rest.at(-1) as object | undefined), "content-type": "application/json" };
    Reflect.apply(writeHead, response, [status, { ...headers, "content-length": Buffer.byteLength(body) }]);
    const { end } = response;
    response.end = () => Reflect.apply(end, response, [body]) as ServerResponse;
    return response;
  };
}

/** As no route of REST has it: /package.Service/Method. */
export const RPC_PATH = /^\/\w+(?:\.\w+)+\/\w+/;
const UNARY_JSON = /^application\/json(; *charset=utf-8)?$/i;

function refusalOf(status: number, { method, headers }: IncomingMessage): AppError | undefined {
  if (status === 405) {
    const said = `an RPC is called with POST, and this request is a ${method ?? "request without a method"}`;
    return new AppError("invalid_argument", said, { next: EXAMPLE });
  }
  if (status !== 415) return undefined;
  const given = headers["content-type"];
  if (given !== undefined && UNARY_JSON.test(given)) {
    // Every other call takes it, so this one is a stream.
    const stream =
      "this RPC is a stream: it takes Content-Type: application/connect+json, each message behind its length";
    return new AppError("invalid_argument", stream, {
      next: "use a Connect or gRPC client, or ask for it once with a Get or List",
    });
  }
  const said =
    "an RPC takes Content-Type: application/json (a stream application/connect+json), " +
    `and this request has ${given === undefined ? "none" : JSON.stringify(given)}`;
  return new AppError("invalid_argument", said, { next: EXAMPLE });
}

const EXAMPLE = `curl -X POST -H 'content-type: application/json' -H "authorization: Bearer $MILLWRIGHT_TOKEN" -d '{}' <url>`;
