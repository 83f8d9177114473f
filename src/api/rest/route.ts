import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { reachOf } from "../../kernel/access/scope.ts";
import { AppError, type ErrorKind } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { GuardThings } from "../auth/thing-guard.ts";
import { RETRY_AFTER, retryAfterOf, toHttpError } from "../transport/error-codes.ts";
import { findUnstorable } from "./storable.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
type Method = (typeof METHODS)[number];

/** What a handler is given: checked, with defaults filled in. */
export interface Call<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly caller: Caller;
  /** Of a route with `vouchedAs`: who signed in all the same. */
  readonly voucher: Caller | undefined;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** A route, once: Fastify serves it and the OpenAPI document shows it. Who may use it is in the thing's table of roles. */
export interface Route<
  P extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  B extends z.ZodType = z.ZodType,
> {
  readonly method: Method;
  /** As in OpenAPI: `/api/v1/nodes/{id}`. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Of the body, in bytes. Absent: what all routes take. */
  readonly bodyLimit?: number;
  /** The codes besides 401, 403 and 422 that it may answer with, and what they mean. */
  readonly errors?: Readonly<Record<number, string>>;
  readonly status?: number;
  /** Of the answer; `text` for one that is no JSON, with its media type. */
  readonly answer: z.ZodType | { readonly text: string };
  /** Called by machines that boot and install: it is on `boot.listen` alone where that is set. */
  readonly isForBoot?: boolean;
  /**
   * Of a route that takes no credentials: the route whose callers vouch for what they send here, where they show their credentials. Such
   * credentials must be good.
   */
  readonly vouchedAs?: string;
  /** A request that the tests send. */
  readonly example?: unknown;
  handle(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<unknown>;
}

/** Keeps the types of params, query and body together with the handler. */
export const defineRoute = <
  P extends z.ZodType = z.ZodObject,
  Q extends z.ZodType = z.ZodObject,
  B extends z.ZodType = z.ZodUndefined,
>(
  route: Route<P, Q, B>,
): AnyRoute => route as unknown as AnyRoute;

/** A route whose own types nobody asks for any more: each has checked what its handler is given. */
export type AnyRoute = Route;

export const nameOfRoute = ({ method, path }: Pick<AnyRoute, "method" | "path">): string => `${method} ${path}`;

export interface RouteDeps {
  /** Throws unless the request may use the route. */
  readonly authenticate: (request: FastifyRequest, route: string) => Promise<Caller>;
  /** Throws unless all that the request names is within the caller's scope. */
  readonly guardThings: GuardThings;
  readonly reportUnexpected: (cause: unknown, request: FastifyRequest) => string;
}

/** Registers routes whose errors have the shape of this contract: `{detail: "text"}`, and 422 with a list. */
export function registerRoutes(app: FastifyInstance, routes: readonly AnyRoute[], deps: RouteDeps): void {
  const callers = new WeakMap<FastifyRequest, Caller>();
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path.replace(/\{([^}]+)\}/g, ":$1"),
      ...(route.bodyLimit !== undefined && { bodyLimit: route.bodyLimit }),
      // Before the body is read: of who may not call, nothing is parsed.
      onRequest: async (request) => {
        callers.set(request, await deps.authenticate(request, nameOfRoute(route)));
      },
      handler: async (request, reply) => {
        const caller = callers.get(request);
        if (!caller) throw new Error(`${nameOfRoute(route)} was reached without a caller`);
        const call = {
          params: check(route.params, request.params, "path"),
          query: check(route.query ?? z.strictObject({}), request.query, "query"),
          body: check(route.body, request.body, "body"),
          caller,
          voucher: await voucherOf(route, request, deps),
          request,
          reply,
        };
        const { params, query, body } = call;
        await deps.guardThings(caller, nameOfRoute(route), { params, query, body });
        const answer = await route.handle(call as never);
        return reply.code(route.status ?? 200).send(answer);
      },
      errorHandler: (error, request, reply) => {
        const { status, body, next } = toRestError(error, (cause) => deps.reportUnexpected(cause, request));
        if (next !== undefined) reply.header(NEXT_HEADER, headerText(next));
        const retryAfter = retryAfterOf(error);
        if (retryAfter !== undefined) reply.header(RETRY_AFTER, retryAfter);
        return reply.code(status).send(body);
      },
    });
  }
}

async function voucherOf(
  { vouchedAs }: AnyRoute,
  request: FastifyRequest,
  { authenticate }: RouteDeps,
): Promise<Caller | undefined> {
  if (vouchedAs === undefined || request.headers.authorization === undefined) return undefined;
  const voucher = await authenticate(request, vouchedAs);
  // The report says which node it is about, and nothing has compared that with a scope.
  if (reachOf(voucher.scope) === undefined) return voucher;
  throw new AppError(
    "permission_denied",
    `'${voucher.name}' may not vouch for a report: its scope is limited to some things`,
    { next: "report with the token of the node's boot, or ask an administrator for a token without such a scope" },
  );
}

/** What is wrong with a request, in the shape that clients of this contract know. */
export class InvalidRequest extends Error {
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; "));
    this.problems = problems;
  }
}

/** For what a service finds wrong with the query: unless told, it is taken to be in the body. */
export async function inQuery<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== "invalid_argument") throw error;
    const loc = ["query", ...(error.detail.field === undefined ? [] : [error.detail.field])];
    throw new InvalidRequest([{ type: "value_error", loc, msg: error.message }]);
  }
}

interface Problem {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
}

function check(schema: z.ZodType | undefined, value: unknown, where: "path" | "query" | "body"): unknown {
  if (schema === undefined) return undefined;
  const odd = findUnstorable(value);
  if (odd) throw new InvalidRequest([{ type: "value_error", loc: [where, ...odd.at], msg: odd.why }]);
  const result = schema.safeParse(value ?? (where === "body" ? undefined : {}));
  if (result.success) return result.data;
  throw new InvalidRequest(
    result.error.issues.map(({ code, path, message }) => ({
      type: code,
      loc: [where, ...path.map((part) => (typeof part === "number" ? part : String(part)))],
      msg: message,
    })),
  );
}

/** The codes of the node-install routes: a wrong state is 400, and what cannot be right whatever the state is 422. */
const STATUS_OF = {
  invalid_argument: 422,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  failed_precondition: 400,
  conflict: 409,
  exhausted: 429,
  unsupported: 501,
  unavailable: 503,
  deadline_exceeded: 504,
  cancelled: 499,
  internal: 500,
} as const satisfies Record<ErrorKind, number>;

interface RestError {
  readonly status: number;
  readonly body: unknown;
  /** The command that helps next. */
  readonly next?: string;
}

/** The header beside the body, whose shape is the contract's. Percent-encoded as gRPC does its messages: ids are in it. */
const NEXT_HEADER = "millwright-next";
const headerText = (text: string): string => text.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent);

export function toRestError(error: unknown, report: (cause: unknown) => string): RestError {
  if (error instanceof InvalidRequest) return { status: 422, body: { detail: error.problems } };
  const status = refusedByFastify(error);
  if (status !== undefined) {
    const msg = error instanceof Error ? error.message : String(error);
    // JSON that cannot be read is a body that is not valid.
    if (status === 400) return { status: 422, body: { detail: [{ type: "json_invalid", loc: ["body"], msg }] } };
    return { status, body: { detail: msg } };
  }
  if (error instanceof AppError && error.kind === "invalid_argument") {
    const loc = ["body", ...(error.detail.field ?? "").split(".").filter((part) => part !== "")];
    return { status: 422, body: { detail: [{ type: "value_error", loc, msg: error.message }] } };
  }
  const { message, kind, next } = toHttpError(error, report).body.error;
  return { status: STATUS_OF[kind], body: { detail: message }, ...(next !== "" && { next }) };
}

/** Bad JSON, too large, a wrong media type: the texts are for callers. */
function refusedByFastify(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("statusCode" in error) || typeof error.statusCode !== "number") return undefined;
  if (error.statusCode < 400 || error.statusCode >= 500) return undefined;
  return error.statusCode;
}
