import type { Thing } from "../../kernel/lifecycle.ts";

/** What a run works on: a machine, a rack, a switch, a shelf, a fleet node. */
export interface RunTarget {
  /** The kind of its lifecycle. */
  readonly kind: string;
  readonly id: string;
}

/** The target with its row, as it was when the run was loaded. */
export interface LoadedTarget<T extends Thing = Thing> extends RunTarget {
  /** Null once it was deleted: the run then fails at its next step. */
  readonly thing: T | null;
}
