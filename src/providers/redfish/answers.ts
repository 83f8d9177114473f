import { type Asked, createAnswerReader } from "../transport/device-answer.ts";
import { type Answer, excerpt, parseJson } from "../transport/http-answer.ts";
import { isResource, listAt, textAt, valueAt } from "./resource.ts";

export const { resourceOf, failureOf } = createAnswerReader({
  saidBy,
  callerOf: ({ username }) => ({ as: `user ${username}`, showing: " with the given password" }),
});

/** What the BMC wrote about an error, in its own words: Redfish's extended information, else whatever text there is. */
function saidBy(asked: Asked, answer: Answer): string {
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
