import type { CauseSpec } from "../causes.ts";

/** After a restored backup. */
export const RESTORE_CAUSES = {
  restored: {
    doc: "The database was restored from a backup, and nobody knows what was done since.",
    helps: "Look at the device before it is used.",
    disposition: "fail",
    facts: [],
  },
} as const satisfies Readonly<Record<string, CauseSpec>>;
