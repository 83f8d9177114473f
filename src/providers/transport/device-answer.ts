import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { DeviceFailure } from "../../capabilities/device-failure.ts";
import { bmcFailure } from "./bmc-failure.ts";
import { nameOf } from "./bmc-gateway.ts";
import { isResource, type Resource } from "./device-json.ts";
import type { Carried } from "./hide-secrets.ts";
import { type Answer, excerpt, parseJson, retryAfter } from "./http-answer.ts";

/** What was asked of whom, for messages. */
export interface Asked extends Carried {
  readonly target: BmcTarget;
  readonly method: string;
  readonly path: string;
}

/** In which one technology over HTTP differs from another. */
export interface AnswerRules {
  /** What was written about an error, in the device's own words, without our secrets; empty for nothing. */
  saidBy(asked: Asked, answer: Answer): string;
  callerOf(target: BmcTarget): Caller;
  /** Statuses of trouble that passes by itself, beside those that HTTP itself calls so. */
  readonly alsoBusy?: readonly number[];
}

/** Who was refused. */
export interface Caller {
  readonly as: string;
  /** What goes with the name where it is the secret that may be wrong; empty for none. */
  readonly showing: string;
}

export interface AnswerReader {
  /** The object in a good answer; for any other answer, the failure that it means. */
  resourceOf(asked: Asked, answer: Answer): Resource;
  failureOf(asked: Asked, answer: Answer): DeviceFailure | undefined;
}

export function createAnswerReader(rules: AnswerRules): AnswerReader {
  const failureOf: AnswerReader["failureOf"] = (asked, answer) =>
    answer.status >= 200 && answer.status < 300 ? undefined : failureIn(rules, asked, answer);
  return {
    failureOf,
    resourceOf(asked, answer) {
      const failure = failureOf(asked, answer);
      if (failure !== undefined) throw failure;
      if (answer.text.trim() === "" && (answer.status === 202 || answer.status === 204 || asked.method !== "GET"))
        return {};
      const parsed = parseJson(answer.text);
      if (isResource(parsed)) return parsed;
      // A device that is just starting answers with half a page; the next answer is usually whole.
      throw bmcFailure(
        "protocol",
        asked.target,
        `${describe(asked)} was answered with something that is not a JSON object: ${excerpt(asked, answer.text) || "nothing"}`,
        { status: answer.status },
      );
    },
  };
}

const BUSY: readonly number[] = [408, 425, 429];

function failureIn({ saidBy, callerOf, alsoBusy = [] }: AnswerRules, asked: Asked, answer: Answer): DeviceFailure {
  const { status } = answer;
  const said = saidBy(asked, answer);
  const tail = said === "" ? "" : `: ${said}`;
  const name = describe(asked);
  const options = { status };
  if (status >= 300 && status < 400) {
    const message = `${name} was answered with a redirect (${status}), which is refused: credentials are sent to the given address only`;
    return bmcFailure("protocol", asked.target, message, { ...options, disposition: "fail" });
  }
  const { as, showing } = callerOf(asked.target);
  if (status === 401) {
    const message = `wrong credentials: ${nameOf(asked.target)} does not accept ${as}${showing} (401)${tail}`;
    return bmcFailure("credentials_rejected", asked.target, message, options);
  }
  if (status === 403) {
    const message = `${nameOf(asked.target)}: ${as} lacks the right for ${requestOf(asked)} (403)${tail}; give credentials of an account that has it`;
    return bmcFailure("forbidden", asked.target, message, options);
  }
  if (status === 404)
    return bmcFailure("not_found_there", asked.target, `${name}: no such resource (404)${tail}`, options);
  if (status >= 500 || BUSY.includes(status) || alsoBusy.includes(status)) {
    const retryAfterMs = retryAfter(answer.headers["retry-after"]);
    return bmcFailure("busy", asked.target, `${name} was answered with status ${status}${tail}`, {
      ...options,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  }
  return bmcFailure("refused_by_device", asked.target, `${name} was refused with status ${status}${tail}`, options);
}

const describe = (asked: Asked): string => `${nameOf(asked.target)}: ${requestOf(asked)}`;

/** Without the query, which says nothing to people. */
const requestOf = ({ method, path }: Asked): string => `${method} ${path.split("?")[0]}`;
