import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { nameOf } from "../bmc-gateway.ts";
import type { Carried } from "../hide-secrets.ts";
import { type Answer, excerpt, parseJson, retryAfter } from "../http-answer.ts";
import { isResource, listAt, type Resource, textAt, valueAt } from "./resource.ts";

export interface Asked extends Carried {
  readonly target: BmcTarget;
  readonly method: string;
  readonly path: string;
}

/** The resource in a good answer; for any other answer, the failure that it means. */
export function resourceOf(asked: Asked, answer: Answer): Resource {
  const failure = failureOf(asked, answer);
  if (failure !== undefined) throw failure;
  if (answer.text.trim() === "" && (answer.status === 202 || answer.status === 204 || asked.method !== "GET"))
    return {};
  const parsed = parseJson(answer.text);
  if (isResource(parsed)) return parsed;
  // A BMC that is just starting answers with half a page; the next answer is usually whole.
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
  if (status >= 300 && status < 400) {
    return new DeviceFailure(
      "fail",
      "protocol",
      `${name} was answered with a redirect (${status}), which is refused: credentials are sent to the given address only`,
      { status },
    );
  }
  if (status === 401) {
    const message = `wrong credentials: ${nameOf(asked.target)} does not accept user ${asked.target.username} with the given password (401)${tail}`;
    return new DeviceFailure("fail", "credentials", message, { status });
  }
  if (status === 403) {
    const message = `wrong credentials: ${name} is forbidden to user ${asked.target.username} (403)${tail}. Give an account with that right`;
    return new DeviceFailure("fail", "credentials", message, { status });
  }
  if (status === 404)
    return new DeviceFailure("fail", "protocol", `${name}: the BMC has no such resource (404)${tail}`, { status });
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const retryAfterMs = retryAfter(answer.headers["retry-after"]);
    return new DeviceFailure("retry", "busy", `${name} was answered with status ${status}${tail}`, {
      status,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  }
  return new DeviceFailure("fail", "refused", `${name} was refused with status ${status}${tail}`, { status });
}

const describe = ({ target, method, path }: Asked): string => `${nameOf(target)}: ${method} ${path}`;

/** What the BMC wrote about an error, in its own words: Redfish's extended information, else whatever text there is. */
function saidBy(asked: Carried, answer: Answer): string {
  const body = parseJson(answer.text);
  const messages = listAt(body, "error", "@Message.ExtendedInfo").flatMap((info) => {
    const message = textAt(info, "Message");
    return message === undefined ? (textAt(info, "MessageId") ?? []) : message;
  });
  const text =
    messages.length > 0 ? messages.join(" ") : (textAt(body, "error", "message") ?? textAt(body, "error", "code"));
  if (text !== undefined) return excerpt(asked, text);
  return isResource(body) && valueAt(body, "error") !== undefined ? "" : excerpt(asked, answer.text);
}
