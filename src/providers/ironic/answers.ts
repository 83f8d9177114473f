import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { nameOf } from "../bmc-gateway.ts";
import { isResource, type Resource, textAt, valueAt } from "../device-json.ts";
import { type Answer, excerpt, parseJson, retryAfter } from "../http-answer.ts";
import { signInOf } from "./sign-in.ts";

export interface Asked {
  readonly target: BmcTarget;
  readonly method: string;
  readonly path: string;
}

/** The object in a good answer; for any other answer, the failure that it means. */
export function resourceOf(asked: Asked, answer: Answer): Resource {
  const failure = failureOf(asked, answer);
  if (failure !== undefined) throw failure;
  if (answer.text.trim() === "" && asked.method !== "GET") return {};
  const parsed = parseJson(answer.text);
  if (isResource(parsed)) return parsed;
  throw new DeviceFailure(
    "retry",
    "protocol",
    `${describe(asked)} was answered with something that is not a JSON object: ${excerpt(asked, answer.text) || "nothing"}`,
    { status: answer.status },
  );
}

export function failureOf(asked: Asked, answer: Answer): DeviceFailure | undefined {
  const { status } = answer;
  if (status >= 200 && status < 300) return undefined;
  const said = saidBy(asked, answer);
  const tail = said === "" ? "" : `: ${said}`;
  const name = describe(asked);
  const options = { status };
  if (status >= 300 && status < 400) {
    const message = `${name} was answered with a redirect (${status}), which is refused: credentials are sent to the given address only`;
    return new DeviceFailure("fail", "protocol", message, options);
  }
  if (status === 401 || status === 403) {
    const verb = status === 401 ? "does not accept" : `forbids ${asked.method} ${asked.path} to`;
    const message = `wrong credentials: ${nameOf(asked.target)} ${verb} ${signInOf(asked.target).as} (${status})${tail}`;
    return new DeviceFailure("fail", "credentials", message, options);
  }
  if (status === 404) return new DeviceFailure("fail", "protocol", `${name}: not found (404)${tail}`, options);
  // 409: a conductor holds the node for somebody else's work; it lets go by itself.
  if (status === 409 || status === 408 || status === 425 || status === 429 || status >= 500) {
    const retryAfterMs = retryAfter(answer.headers["retry-after"]);
    const pause = retryAfterMs === undefined ? {} : { retryAfterMs };
    return new DeviceFailure("retry", "busy", `${name} was answered with status ${status}${tail}`, {
      ...options,
      ...pause,
    });
  }
  return new DeviceFailure("fail", "refused", `${name} was refused with status ${status}${tail}`, options);
}

const describe = ({ target, method, path }: Asked): string => `${nameOf(target)}: ${method} ${path.split("?")[0]}`;

/** Ironic puts its reason into an object, the object as text into another, and some proxies before it answer with neither. */
function saidBy(asked: Asked, answer: Answer): string {
  const body = parseJson(answer.text);
  const wrapped = valueAt(body, "error_message");
  const fault = typeof wrapped === "string" ? (parseJson(wrapped) ?? wrapped) : (wrapped ?? valueAt(body, "error"));
  if (typeof fault === "string") return excerpt(asked, fault);
  const text = textAt(fault, "faultstring") ?? textAt(fault, "description") ?? textAt(fault, "message");
  return excerpt(asked, text ?? (isResource(body) && isResource(fault) ? "" : answer.text));
}
