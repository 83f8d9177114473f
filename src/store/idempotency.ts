import { AppError } from "../kernel/errors.ts";
import type { Queryable } from "./database.ts";

/**
 * Notes a caller's idempotency key. False: the same call was made before, and its answer still holds. A second caller that
 * races with the first waits here until that one has committed.
 */
export async function rememberKey(
  tx: Queryable,
  call: { readonly scope: string; readonly key: string; readonly fingerprint: string; readonly thingId: string },
): Promise<boolean> {
  const inserted = await tx.query(
    `insert into idempotency_keys (scope, key, fingerprint, thing_id) values ($1, $2, $3, $4) on conflict do nothing returning key`,
    [call.scope, call.key, call.fingerprint, call.thingId],
  );
  if (inserted.length > 0) return true;
  const [known] = await tx.query<{ fingerprint: string }>(
    `select fingerprint from idempotency_keys where scope = $1 and key = $2`,
    [call.scope, call.key],
  );
  if (known?.fingerprint !== call.fingerprint) {
    throw new AppError("invalid_argument", "request_id: was used before with other arguments; choose a new one", {
      field: "request_id",
    });
  }
  return false;
}
