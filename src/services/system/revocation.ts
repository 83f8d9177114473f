import { AppError } from "../../kernel/errors.ts";
import * as journal from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";

export interface Revocation {
  /** What ends: token or session. */
  readonly kind: string;
  readonly id: string;
  /** Ends it now, or leaves it as it ended before; null: there is none. */
  readonly end: (
    tx: Transaction,
    now: Date,
  ) => Promise<{ readonly name: string; readonly endedAt: Date | null } | null>;
}

/** Ends what somebody signs in with, at once, and audits it; asking again is harmless. */
export async function revoke(deps: ServiceDeps, caller: Caller, { kind, id, end }: Revocation): Promise<void> {
  if (id === "") throw new AppError("invalid_argument", "id: is required", { field: "id" });
  const now = nowOf(deps);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }]);
    const ended = await end(tx, now);
    if (!ended) {
      throw new AppError("not_found", `there is no ${kind} ${JSON.stringify(id.slice(0, 80))}`, {
        field: "id",
        next: `millwright ${kind} list`,
      });
    }
    if (ended.endedAt?.getTime() !== now.getTime()) return; // ended before, and told then
    const { name } = ended;
    await journal.append(tx, [{ ...auditOf(kind, id, caller), version: 2, type: "revoked", data: { name } }]);
    journal.announce(tx);
  });
}

/** Tokens and sessions have no lifecycle, but what is done with them is audited. */
export const auditOf = (kind: string, id: string, caller: Caller) => ({
  ...{ kind, id, from: null, to: null, owner: "caller", reason: null },
  ...doneBy(caller),
});
