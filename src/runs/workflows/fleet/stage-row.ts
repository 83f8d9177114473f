import type { FailureClass } from "../../../lifecycles/fleet-node/failure-classes.ts";

/** What people read of a stage: what it calls, when it is done, and what it fails with. All else of it is in its workflow. */
export interface StageRow {
  readonly doc: string;
  /** Calls to MAAS, below `/MAAS/api/2.0/`; empty: none. */
  readonly calls: readonly string[];
  readonly doneWhen: string;
  /** Beside those that every stage with calls fails with. */
  readonly failures: readonly FailureClass[];
}

/** What every stage that calls MAAS may fail with. */
export const FAILURES_OF_CALLS = [
  "maas_unavailable",
  "credentials_rejected",
  "site_unavailable",
  "credentials_missing",
] as const satisfies readonly FailureClass[];
