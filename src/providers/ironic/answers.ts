import { type Asked, createAnswerReader } from "../transport/device-answer.ts";
import { isResource, textAt, valueAt } from "../transport/device-json.ts";
import { type Answer, excerpt, parseJson } from "../transport/http-answer.ts";
import { signInOf } from "./sign-in.ts";

export const { resourceOf } = createAnswerReader({
  saidBy,
  callerOf: signInOf,
  // A conductor holds the node for somebody else's work; it lets go by itself.
  alsoBusy: [409],
});

/** Ironic puts its reason into an object, the object as text into another, and some proxies before it answer with neither. */
function saidBy(asked: Asked, answer: Answer): string {
  const body = parseJson(answer.text);
  const wrapped = valueAt(body, "error_message");
  const fault = typeof wrapped === "string" ? (parseJson(wrapped) ?? wrapped) : (wrapped ?? valueAt(body, "error"));
  if (typeof fault === "string") return excerpt(asked, fault);
  const text = textAt(fault, "faultstring") ?? textAt(fault, "description") ?? textAt(fault, "message");
  return excerpt(asked, text ?? (isResource(body) && isResource(fault) ? "" : answer.text));
}
