import { type Asked, createAnswerReader } from "../transport/device-answer.ts";
import { type Answer, excerpt, parseJson } from "../transport/http-answer.ts";
import { isResource, listAt, textAt, valueAt } from "./resource.ts";

export const { resourceOf, failureOf } = createAnswerReader({
  saidBy,
  callerOf: ({ username }) => ({ as: `user ${username}`, showing: " with the given password" }),
});

/**
 * What the BMC wrote about an error, in its own words: the sentences of Redfish's extended information, else the one of the error
 * itself, since some write their reason there and only the code of a general error beside it. A code comes last.
 */
function saidBy(asked: Asked, answer: Answer): string {
  const body = parseJson(answer.text);
  const infos = listAt(body, "error", "@Message.ExtendedInfo");
  const all = (member: string) =>
    [...new Set(infos.flatMap((info) => textAt(info, member) ?? []))].join(" ") || undefined;
  const text = all("Message") ?? textAt(body, "error", "message") ?? all("MessageId") ?? textAt(body, "error", "code");
  if (text !== undefined) return excerpt(asked, text);
  return isResource(body) && valueAt(body, "error") !== undefined ? "" : excerpt(asked, answer.text);
}
