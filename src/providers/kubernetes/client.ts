import { Agent as HttpAgent, type OutgoingHttpHeaders, type RequestOptions } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { urlToHttpOptions } from "node:url";
import type { CallContext } from "../../capabilities/call.ts";
import type { ActsAs, ClusterTarget } from "../../capabilities/cluster-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Duration, describeDuration, seconds } from "../../kernel/time/duration.ts";
import { checkAddress, guardedLookup, type MayReach } from "../transport/allowed-networks.ts";
import { isResource, listAt, type Resource, textAt } from "../transport/device-json.ts";
import { parseJson } from "../transport/http-answer.ts";
import { isNotHttp, RequestFailed, requestText } from "../transport/http-request.ts";
import { oneLine } from "../transport/one-line.ts";
import { ownTrouble } from "../transport/own-trouble.ts";
import { TooLarge } from "../transport/reading/read-text.ts";
import { isUntrusted, transportCause } from "../transport/transport-cause.ts";
import { expiredSince } from "./credentials.ts";

export interface KubernetesClientOptions {
  readonly requestTimeout?: Duration;
  readonly largestAnswer?: number;
  readonly mayReach?: MayReach;
}

export interface KubernetesRequest {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Without the credentials, for what everybody may read. */
  readonly anonymous?: true;
}

/** The little of the Kubernetes API that is needed here. Every failure is a `DeviceFailure`, or a `StepFailure` when stopped. */
export interface KubernetesClient {
  send(target: ClusterTarget, request: KubernetesRequest, call: CallContext): Promise<Resource>;
  /** `undefined` where it answers 404. */
  find(target: ClusterTarget, request: KubernetesRequest, call: CallContext): Promise<Resource | undefined>;
  close(): void;
}

const LONGEST_EXCERPT = 300;

export function createKubernetesClient(options: KubernetesClientOptions = {}): KubernetesClient {
  const { requestTimeout = seconds(15), largestAnswer = 64 * 1_024 * 1_024, mayReach } = options;
  const agents = { "http:": new HttpAgent({ keepAlive: true }), "https:": new HttpsAgent({ keepAlive: true }) };

  async function send(target: ClusterTarget, asked: KubernetesRequest, call: CallContext): Promise<Resource> {
    const url = new URL(`${target.apiUrl}${asked.path}`);
    for (const [name, value] of Object.entries(asked.query ?? {})) url.searchParams.set(name, value);
    const called = { at: "cluster", name: `cluster ${target.name}:` } as const;
    checkAddress(url.hostname.replace(/^\[|\]$/g, ""), mayReach, called);
    const deadline = call.mayTouchDevice(requestTimeout);
    const signal = AbortSignal.any([call.signal, AbortSignal.timeout(deadline)]);
    const agent = agents[url.protocol === "https:" ? "https:" : "http:"];
    const what = `cluster ${target.name}: ${asked.method} ${asked.path}`;
    try {
      const lookup = mayReach && { lookup: guardedLookup(mayReach, called) };
      const { status, text } = await requestText({
        options: { ...urlToHttpOptions(url), ...optionsFor(target, asked, agent), ...lookup },
        isSecure: url.protocol === "https:",
        body: asked.body === undefined ? undefined : JSON.stringify(asked.body),
        signal,
        largestAnswer,
      });
      return answerOf(target, what, status, text);
    } catch (failed) {
      const error = failed instanceof RequestFailed ? failed.cause : failed;
      if (error instanceof StepFailure) throw error;
      if (call.signal.aborted) throw new StepFailure("stopped", `${what} was stopped`, { cause: call.signal.reason });
      if (error instanceof TooLarge || isNotHttp(error)) throw notTheApi(what, error);
      if (isUntrusted(error)) throw notTrusted(target, error);
      const own = ownTrouble(error);
      if (own) throw own;
      const why = signal.aborted ? `no answer within ${describeDuration(deadline)}` : transportCause(error);
      const code = signal.aborted ? "timed_out" : "unreachable";
      throw new DeviceFailure(code, "cluster", `${what}: the API cannot be reached: ${why}`, { cause: error });
    }
  }

  return {
    send,
    async find(target, asked, call) {
      try {
        return await send(target, asked, call);
      } catch (error) {
        if (error instanceof DeviceFailure && error.status === 404) return undefined;
        throw error;
      }
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** Somebody answers, and not as a cluster does. */
function notTheApi(what: string, error: unknown): DeviceFailure {
  const isTooLarge = error instanceof TooLarge;
  const why = isTooLarge ? `${error.message}, more than any that we ask for should be` : "the answer is not HTTP";
  // What is too large once is too large always.
  const disposition = isTooLarge ? "fail" : "retry";
  return new DeviceFailure("protocol", "cluster", `${what}: ${why}`, { disposition, cause: error });
}

/** The authority was changed, or somebody else answers at the address. */
const notTrusted = ({ name, apiUrl }: ClusterTarget, error: unknown): DeviceFailure =>
  new DeviceFailure(
    "certificate_untrusted",
    "cluster",
    `cluster ${name}: the API at ${apiUrl} shows a certificate that its kubeconfig does not trust (${transportCause(error)}). ` +
      `Nothing was sent to it. If the cluster has another authority now: millwright cluster update ${name} --kubeconfig <file>`,
    { facts: { name }, cause: error },
  );

function optionsFor(target: ClusterTarget, asked: KubernetesRequest, agent: HttpAgent | HttpsAgent): RequestOptions {
  const { ca, credentials, tlsServerName, actsAs } = target;
  const certificate = "token" in credentials ? {} : { cert: credentials.certificate, key: credentials.key };
  return {
    method: asked.method,
    agent,
    ...(ca === null ? {} : { ca }),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    ...(asked.anonymous ? {} : certificate),
    headers: {
      accept: "application/json",
      ...("token" in credentials && !asked.anonymous ? { authorization: `Bearer ${credentials.token}` } : {}),
      ...(actsAs === undefined || asked.anonymous ? {} : impersonating(actsAs)),
      ...(asked.body === undefined
        ? {}
        : { "content-type": asked.method === "PATCH" ? "application/merge-patch+json" : "application/json" }),
    },
  };
}

const impersonating = ({ user, uid, groups, extra }: ActsAs): OutgoingHttpHeaders => ({
  "impersonate-user": user,
  ...(uid !== null && { "impersonate-uid": uid }),
  ...(groups.length > 0 && { "impersonate-group": [...groups] }),
  ...Object.fromEntries(
    Object.entries(extra).map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key)}`, [...values]]),
  ),
});

function answerOf(target: ClusterTarget, what: string, status: number, text: string): Resource {
  const body = parseJson(text);
  if (status >= 200 && status < 300) {
    if (isResource(body)) return body;
    throw new DeviceFailure("protocol", "cluster", `${what} was answered with something that is not a JSON object`, {
      status,
    });
  }
  const said = withoutSecrets(wordsOf(body), target);
  const tail = said === "" ? "" : `: ${said}`;
  const message = `${what} was answered with status ${status}${tail}`;
  if (status === 401 || status === 403)
    throw new DeviceFailure(
      status === 401 ? "credentials_rejected" : "forbidden",
      "cluster",
      `${message}${status === 401 ? expiredSince(target.credentials) : ""}. Check the cluster's kubeconfig and what its user may do`,
      { status, said, facts: { name: target.name } },
    );
  // 410: the list of which this was to be the next page is not kept any more; from its beginning it can be had.
  if ([408, 409, 410, 429].includes(status) || status >= 500)
    throw new DeviceFailure("busy", "cluster", message, { status, said });
  throw new DeviceFailure("refused_by_device", "cluster", message, { status, said });
}

/** What the API says of a failure, with the causes that it gives: which budget keeps a pod stands there alone. */
function wordsOf(body: unknown): string {
  const causes = listAt(body, "details", "causes").flatMap((cause) => textAt(cause, "message") ?? []);
  return [...new Set([textAt(body, "message") ?? "", ...causes])].filter((words) => words !== "").join(" ");
}

function withoutSecrets(text: string, { credentials }: ClusterTarget): string {
  return oneLine("token" in credentials ? text.replaceAll(credentials.token, "***") : text, LONGEST_EXCERPT);
}
