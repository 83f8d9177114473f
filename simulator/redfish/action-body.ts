import { type Answer, refuse } from "./answer.ts";

/** Takes the one parameter of an action out of the body, or says what is wrong with it, as strictly as the standard allows. */
export function readActionParameter<const V extends string>(
  body: unknown,
  action: string,
  parameter: string,
  allowed: readonly V[],
): { readonly value: V } | { readonly refused: Answer } {
  const given = body ?? {};
  if (typeof given !== "object" || Array.isArray(given)) {
    return { refused: refuse("UnrecognizedRequestBody", "it must be a JSON object.") };
  }
  const unknown = Object.keys(given).find((key) => key !== parameter);
  if (unknown !== undefined) return { refused: refuse("ActionParameterUnknown", action, unknown) };
  const value: unknown = Object.getOwnPropertyDescriptor(given, parameter)?.value;
  if (value === undefined) return { refused: refuse("ActionParameterMissing", action, parameter) };
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) {
    return { refused: refuse("ActionParameterValueNotInList", action, parameter, allowed.join(", ")) };
  }
  return { value: found };
}
