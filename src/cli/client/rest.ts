import type { UniversalClientResponse } from "@connectrpc/connect/protocol";
import type { ConnectionOptions } from "./connect.ts";
import { CliError, EXIT, type ExitCode, oneLine } from "./errors.ts";
import { createHttpClient } from "./http-client.ts";
import { tlsFiles } from "./tls-files.ts";

export interface RestCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `/api/v1/nodes`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
}

const EXIT_OF_STATUS = new Map<number, ExitCode>([
  [400, EXIT.precondition],
  [401, EXIT.denied],
  [403, EXIT.denied],
  [404, EXIT.notFound],
  [409, EXIT.precondition],
  [422, EXIT.usage],
  [429, EXIT.unavailable],
  [501, EXIT.precondition],
  [503, EXIT.unavailable],
]);
const TIMEOUT_MS = 60_000;

/** One call of the REST API; what it refuses becomes an error for people. */
export async function callRest(connection: ConnectionOptions, call: RestCall, signal: AbortSignal): Promise<unknown> {
  // Not as the second argument of URL, which would lose the path of a proxy.
  const url = new URL(`${connection.url.replace(/\/+$/, "")}${call.path}`);
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const header = new Headers();
  if (call.body !== undefined) header.set("content-type", "application/json");
  if (connection.token !== undefined) header.set("authorization", `Bearer ${connection.token}`);
  const response = await createHttpClient(tlsFiles(connection))({
    url: url.href,
    method: call.method,
    header,
    body: bytesOf(call.body),
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  const text = await textOf(response.body);
  if (response.status >= 400) throw refusal(response, text, connection.url);
  return JSON.parse(text) as unknown;
}

async function* bytesOf(body: unknown): AsyncGenerator<Uint8Array> {
  if (body !== undefined) yield Buffer.from(JSON.stringify(body));
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function refusal(
  { status, header }: Pick<UniversalClientResponse, "status" | "header">,
  text: string,
  server: string,
): CliError {
  const exitCode = EXIT_OF_STATUS.get(status) ?? EXIT.internal;
  const detail = detailOf(text);
  if (detail === undefined)
    return new CliError(EXIT.unavailable, `${server} did not answer as Millwright does (HTTP ${status})`);
  return new CliError(exitCode, oneLine(detail), nextIn(header) ?? HINT_OF_STATUS.get(status));
}

/** Where the server names nothing that helps. */
const HINT_OF_STATUS = new Map([
  [401, "give a token with --token-file or MILLWRIGHT_TOKEN; `millwright token create` makes one"],
  [403, "ask an administrator for a token or a mapping with one of these roles"],
]);

/** The command that helps next, percent-encoded. A proxy may have put anything there. */
function nextIn(header: Headers): string | undefined {
  try {
    const next = header.get("millwright-next");
    return next === null ? undefined : oneLine(decodeURIComponent(next));
  } catch {
    return undefined;
  }
}

/** `{detail: "text"}`, or a list of what is wrong where. */
function detailOf(text: string): string | undefined {
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    if (typeof detail === "string") return detail;
    if (!Array.isArray(detail)) return undefined;
    return detail
      .map(({ loc, msg }: { readonly loc: readonly string[]; readonly msg: string }) =>
        // What is wrong with the whole of it, such as a field too many, is in no field.
        loc.length > 1 ? `${loc.slice(1).join(".")}: ${msg}` : msg,
      )
      .join("; ");
  } catch {
    return undefined;
  }
}
