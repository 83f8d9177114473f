import { UsageError } from "../../client/errors.ts";
import { SERVER_VOCABULARY } from "../../generated/server-vocabulary.ts";

/** Things bring their own words; these kinds have no lifecycle, and are only audited. */
const AUDITED: { readonly [word: string]: string } = { group: "device_group", workflow: "install_workflow" };

/** `rack/rack-1`: the kind as it is typed everywhere, and the id, which may have a slash itself. */
export function thingOf(text: string, option: string, hint?: string): { readonly kind: string; readonly id: string } {
  const at = text.indexOf("/");
  if (at > 0 && at < text.length - 1) return { kind: kindOf(text.slice(0, at)), id: text.slice(at + 1) };
  throw new UsageError(`${option}: ${JSON.stringify(text)} is not <kind>/<id>`, hint);
}

/** power-shelf, power_shelf and ps are one kind; what the server does not know it says itself. */
export function kindOf(word: string): string {
  const thing = SERVER_VOCABULARY.kinds.find(({ short }) => short === word);
  return (
    thing?.kind ?? (Object.hasOwn(AUDITED, word) ? AUDITED[word] : undefined) ?? word.toLowerCase().replaceAll("-", "_")
  );
}
