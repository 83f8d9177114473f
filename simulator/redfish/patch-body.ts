import type { z } from "zod";
import { type Answer, refuse } from "./answer.ts";

/** Reads a PATCH, or an action with several parameters, as strictly as the standard allows. */
export function readBodyOf<T>(
  schema: z.ZodType<T>,
  body: unknown,
  /** The name of the action, for one; undefined for a PATCH. */
  action?: string,
): { readonly value: T } | { readonly refused: Answer } {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return { refused: refuse("UnrecognizedRequestBody", "it must be a JSON object.") };
  const result = schema.safeParse(body);
  if (result.success) return { value: result.data };
  return { refused: refusalOf(result.error.issues[0], action) };
}

function refusalOf(issue: z.core.$ZodIssue | undefined, action: string | undefined): Answer {
  const path = (issue?.path ?? []).map(String);
  const property = path.join("/");
  if (issue?.code === "unrecognized_keys") {
    const unknown = [...path, ...issue.keys.slice(0, 1)].join("/");
    return action === undefined
      ? refuse("PropertyUnknown", unknown)
      : refuse("ActionParameterUnknown", action, unknown);
  }
  const missing = issue?.code === "invalid_type" && issue.message.includes("received undefined");
  if (missing)
    return action === undefined
      ? refuse("PropertyMissing", property)
      : refuse("ActionParameterMissing", action, property);
  if (issue?.code === "invalid_value") {
    const allowed = issue.values.map(String).join(", ");
    return action === undefined
      ? refuse("PropertyValueNotInList", property, allowed)
      : refuse("ActionParameterValueNotInList", action, property, allowed);
  }
  return refuse("PropertyValueTypeError", property);
}
