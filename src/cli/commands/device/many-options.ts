import type { ConfirmOptions } from "../../terminal/confirm.ts";

/** Which things a command is about: named, or chosen by a filter. */
export interface Chosen extends ConfirmOptions {
  readonly ids: readonly string[];
  readonly filter?: string;
}

export const FILTER_OPTION = "--filter <filter>";
/** Of a verb that takes several: nobody has named those that a filter chooses. */
export const YES_TO_FILTER = [
  "-y, --yes",
  "do not ask before acting on what --filter chooses; required without a terminal",
] as const;
