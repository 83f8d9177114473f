import type { Thing } from "../../kernel/lifecycle.ts";

/** A set of machines on all of which somebody starts runs. It never changes: whatever the filter would admit later, these are meant. */
export interface Batch extends Thing {
  readonly id: string;
  /** Ids, in their order. */
  readonly machines: readonly string[];
  readonly initiator: string;
}
