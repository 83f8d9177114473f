import type { Json, StoredOutcome, Thing } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";

/** The lifecycle columns as they come from the database; every thing's table has them. */
export interface StateColumns {
  id: string;
  state: string;
  state_data: { [key: string]: Json };
  state_version: number;
  state_since: Date;
  outcome: StoredOutcome | null;
  version: number;
  basis: number;
}

/** Those that only a transition or an observation writes. */
export const LIFECYCLE_COLUMNS: ReadonlySet<string> = new Set([
  "state",
  "state_data",
  "state_version",
  "state_since",
  "outcome",
  "version",
  "basis",
  "facts",
]);

export const STATE_COLUMNS = ["id", ...LIFECYCLE_COLUMNS].map((column) => `t.${column}`).join(", ");

const UNKNOWN = { code: "unknown" } as const;

export function parseStateColumns(row: StateColumns): Omit<Thing, "facts" | "id"> {
  return {
    version: row.version,
    basis: row.basis,
    state: { ...row.state_data, name: row.state },
    stateSince: row.state_since,
    stateVersion: row.state_version,
    outcome: row.outcome?.cause ? { ...row.outcome, cause: parseCause(row.outcome.cause) ?? UNKNOWN } : row.outcome,
  };
}
