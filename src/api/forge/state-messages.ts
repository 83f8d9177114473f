import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import type { MaintenanceOperation } from "../../services/power-shelf/power-shelves.ts";
import type { PowerShelfState } from "../../services/power-shelf/view.ts";

/** How the forge contract spells the states of a shelf; also the words of its state filter. */
export const FORGE_STATES = {
  initializing: "initializing",
  fetching_data: "fetchingdata",
  configuring: "configuring",
  ready: "ready",
  maintenance: "maintenance",
  error: "error",
  deleting: "deleting",
} as const satisfies Record<PowerShelfState, string>;

/** And its operations. */
export const FORGE_OPERATIONS = {
  power_on: "poweron",
  power_off: "poweroff",
} as const satisfies Record<MaintenanceOperation, string>;

/** Our word for a state word of the contract; undefined for a word that no state of ours has. */
export function stateForForgeWord(word: string): PowerShelfState | undefined {
  const found = Object.entries(FORGE_STATES).find(([, spelt]) => spelt === word);
  return found?.[0] as PowerShelfState | undefined;
}

/** The state as the contract's JSON, its tag first. */
export function forgeStateOf(name: string, carried: { readonly [key: string]: Json | undefined }): JsonObject {
  const state = spellingOf(FORGE_STATES, name);
  const { operation, cause } = carried;
  if (typeof operation === "string" && name === "maintenance")
    return { state, operation: { operation: spellingOf(FORGE_OPERATIONS, operation) } };
  return typeof cause === "string" && name === "error" ? { state, cause } : { state };
}

/** Of words that a newer or damaged row may hold and that have no spelling yet, one is made: others are still to be shown. */
const spellingOf = (spellings: Readonly<Record<string, string>>, word: string): string =>
  spellings[word] ?? word.replaceAll("_", "");

/** JSON as PostgreSQL prints jsonb, which is how histories were always shown: spaced, and keys by length, then by letter. */
export function jsonbText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(jsonbText).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}: ${jsonbText(member)}`).join(", ")}}`;
}
