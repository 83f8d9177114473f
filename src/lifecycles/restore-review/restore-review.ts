import type { Json, Thing } from "../../kernel/lifecycle.ts";

/** How it is known that the database was restored. */
type RestoreSign = "identity_changed" | "behind" | "future_entries" | "operator";

/** A type and no interface, so that it is JSON to the compiler. */
export type Finding = {
  readonly sign: RestoreSign;
  /** For people. */
  readonly message: string;
};

/** A token that was revoked, and lets its bearer in again, since the backup does not know of it. */
export type ReturnedToken = {
  readonly id: string;
  readonly name: string;
  readonly revokedAt: string;
};

/** The pause after a restore: nothing that was under way goes on until a person has said what becomes of it. */
export interface RestoreReview extends Thing {
  readonly createdAt: Date;
  readonly facts: {
    readonly findings: readonly Finding[];
    /** The newest entry of the journal when the restore was found: the database knows nothing later. Null: it has none. */
    readonly asOf: string | null;
    readonly returnedTokens: readonly ReturnedToken[];
    /** The replica that found it. */
    readonly foundBy: string;
    readonly [name: string]: Json;
  };
}
