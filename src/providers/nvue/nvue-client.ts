import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { FabricTarget } from "../../capabilities/rack/fabric.ts";
import { seconds } from "../../kernel/time/duration.ts";
import type { MayReach } from "../transport/allowed-networks.ts";
import type { BmcGateway } from "../transport/bmc-gateway.ts";
import { createAnswerReader } from "../transport/device-answer.ts";
import { textAt } from "../transport/device-json.ts";
import { createGatedExchange, type Fetched } from "../transport/gated-exchange.ts";
import { excerpt, parseJson } from "../transport/http-answer.ts";
import { createHttpExchange } from "../transport/http-exchange.ts";

export interface NvueOptions {
  readonly gateway: BmcGateway;
  readonly caCertificates?: readonly string[];
  /** Without it, every address may be called. */
  readonly mayReach?: MayReach;
}

/** NVUE, the REST API of a switch's operating system. Every failure is a `DeviceFailure`, or a `StepFailure` when stopped. */
export interface NvueClient {
  /** `path` is what follows `/nvue_v1`. */
  get(target: FabricTarget, path: string, call: CallContext): Promise<Fetched>;
  post(target: FabricTarget, path: string, body: unknown, call: CallContext): Promise<Fetched>;
  patch(target: FabricTarget, path: string, body: unknown, call: CallContext): Promise<Fetched>;
  delete(target: FabricTarget, path: string, call: CallContext): Promise<Fetched>;
  close(): void;
}

const ROOT = "/nvue_v1";
const LARGEST_ANSWER = 1_024 * 1_024;

const { resourceOf } = createAnswerReader({
  saidBy: (asked, answer) =>
    excerpt(asked, textAt(parseJson(answer.text), "detail") ?? textAt(parseJson(answer.text), "title") ?? answer.text),
  callerOf: ({ username }) => ({ as: `user ${username}`, showing: " with the given password" }),
});

export function createNvueClient({ gateway, caCertificates, mayReach }: NvueOptions): NvueClient {
  const http = createHttpExchange({
    largestAnswer: LARGEST_ANSWER,
    ...(caCertificates === undefined ? {} : { caCertificates }),
    ...(mayReach === undefined ? {} : { mayReach }),
  });
  const exchange = createGatedExchange({
    gateway,
    http,
    requestTimeout: seconds(10),
    // An id of an action is a number, or text, and no object.
    resourceOf: (asked, answer) => {
      const parsed = parseJson(answer.text);
      const isBare = (typeof parsed === "string" || typeof parsed === "number") && answer.status < 300;
      return isBare ? { id: String(parsed) } : resourceOf(asked, answer);
    },
  });

  async function send(
    target: FabricTarget,
    { method, path, body }: { method: "GET" | "POST" | "PATCH" | "DELETE"; path: string; body?: unknown },
    call: CallContext,
  ): Promise<Fetched> {
    const operation = method === "GET" ? "nvue.read" : "nvue.command";
    const headers = { authorization: basic(target) };
    try {
      const asked = { target: { noun: "switch OS", ...target }, call, operation, method, path: `${ROOT}${path}` };
      return await exchange({ ...asked, headers, signsIn: true, ...(body !== undefined && { body }) });
    } catch (error) {
      throw error instanceof DeviceFailure ? ofSwitchOs(error) : error;
    }
  }

  return {
    get: (target, path, call) => send(target, { method: "GET", path }, call),
    post: (target, path, body, call) => send(target, { method: "POST", path, body }, call),
    patch: (target, path, body, call) => send(target, { method: "PATCH", path, body }, call),
    delete: (target, path, call) => send(target, { method: "DELETE", path }, call),
    close: () => http.close(),
  };
}

const basic = ({ username, password }: FabricTarget): string =>
  `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;

/** What is shared by all that we reach over HTTP calls it a BMC. */
function ofSwitchOs(error: DeviceFailure): DeviceFailure {
  const { code, message, disposition, facts, status, retryAfterMs } = error;
  return new DeviceFailure(code, "switch_os", message, {
    disposition,
    facts,
    cause: error,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}
