import { SERVER_VOCABULARY } from "../../generated/server-vocabulary.ts";

/** Things bring their own words; these kinds have no lifecycle, and are only audited. */
const AUDITED: { readonly [word: string]: string } = { group: "device_group", workflow: "install_workflow" };

/** power-shelf, power_shelf and ps are one kind; what the server does not know it says itself. */
export function kindOf(word: string): string {
  const thing = SERVER_VOCABULARY.kinds.find(({ short }) => short === word);
  return (
    thing?.kind ?? (Object.hasOwn(AUDITED, word) ? AUDITED[word] : undefined) ?? word.toLowerCase().replaceAll("-", "_")
  );
}
