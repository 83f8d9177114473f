import type { SimulatedClock } from "../simulated-clock.ts";
import type { ApiUser } from "./access-rules.ts";
import type { Cluster } from "./cluster.ts";

export interface ApiCall {
  readonly cluster: Cluster;
  readonly clock: SimulatedClock;
  /** The open parts of the path, in their order. */
  readonly names: readonly string[];
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly contentType: string;
  /** Whether the client asked for a table, as `kubectl get` does. */
  readonly asTable: boolean;
  readonly user: ApiUser;
  /** Where clients reach this API, as host:port. */
  readonly endpoint: string;
}

export interface ApiReply {
  readonly status: number;
  readonly body?: unknown;
  /** Sent as it is, in place of a body. */
  readonly text?: string;
}

export type ApiRoute = readonly [method: string, path: RegExp, handle: (call: ApiCall) => ApiReply];

export const ok = (body: unknown): ApiReply => ({ status: 200, body });

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Expired",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  503: "ServiceUnavailable",
};

/** A failure in the form that Kubernetes clients read. */
export const failure = (
  code: number,
  message: string,
  reason = REASONS[code] ?? "InternalError",
  causes?: readonly { readonly reason: string; readonly message: string; readonly field?: string }[],
): ApiReply => ({
  status: code,
  body: {
    ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code },
    ...(causes && { details: { causes } }),
  },
});

export const success: ApiReply = ok({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" });

export const notFound = (resource: string, name: string): ApiReply => failure(404, `${resource} "${name}" not found`);

/** `a=b,c!=d` against a way to look up the value of a key. */
export function selects(selector: string | null, look: (key: string) => string | undefined): boolean {
  return (selector ?? "")
    .split(/(?<!\\),/)
    .filter((term) => term !== "")
    .every((term) => {
      const [, key = "", operator = "", value = ""] = /^([^=!]+)(==|=|!=)?(.*)$/.exec(term) ?? [];
      if (operator === "") return look(key) !== undefined;
      return (look(key) === value.replace(/\\(.)/g, "$1")) === (operator !== "!=");
    });
}

/** A field by which nothing can be selected is refused, and not taken for one that nothing has. */
export function unknownField(query: URLSearchParams, known: readonly string[]): ApiReply | undefined {
  const unknown = (query.get("fieldSelector") ?? "")
    .split(/(?<!\\),/)
    .map((term) => term.split(/!?=/)[0] ?? "")
    .find((field) => field !== "" && !known.includes(field));
  return unknown === undefined
    ? undefined
    : failure(400, `Unable to find "fieldSelector" that matches the resource: field label not supported: ${unknown}`);
}

/** What `kubectl get` prints. */
export const table = (
  columns: readonly string[],
  rows: readonly { readonly cells: readonly string[]; readonly object: unknown }[],
) => ({
  kind: "Table",
  apiVersion: "meta.k8s.io/v1",
  metadata: {},
  columnDefinitions: columns.map((name) => ({
    name,
    type: "string",
    format: name === "Name" ? "name" : "",
    description: "",
    priority: 0,
  })),
  rows: rows.map(({ cells, object }) => ({ cells, object })),
});

export function age(since: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - since) / 1_000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
