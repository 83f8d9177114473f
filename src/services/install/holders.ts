import { type InstallRecord, installStore } from "../../store/install/installs.ts";
import { findInTheWay } from "../../store/lifecycle/claims/claims.ts";
import { wishToEnter } from "../../store/lifecycle/claims/wishes.ts";
import type { Transaction } from "../../store/postgres/database.ts";

/** Who keeps installs from beginning, by their ids: nobody that they work on behalf of. */
export async function heldByOthers(
  tx: Transaction,
  installs: readonly InstallRecord[],
): Promise<ReadonlyMap<string, string>> {
  const wishes = installs.map((install) => wishToEnter(installStore, install, "installing"));
  return new Map(
    [...(await findInTheWay(tx, wishes))].map(([{ claimant }, inTheWay]) => [
      claimant.id,
      inTheWay.map(({ holder }) => `${holder.kind} ${holder.id}`).join(", "),
    ]),
  );
}
