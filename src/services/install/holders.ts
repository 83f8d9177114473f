import type { InstallRecord } from "../../store/install/installs.ts";
import { list as listClaims } from "../../store/lifecycle/claims.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { machineKey } from "../machine/machines.ts";
import { INSTALL_KIND } from "./key.ts";

/** Who holds a machine and is not its install, nor the run that installs through it. */
export async function heldByOthers(
  tx: Transaction,
  installs: readonly InstallRecord[],
): Promise<ReadonlyMap<string, string>> {
  const ours = new Map(installs.map((install) => [install.id as string, install]));
  const claimed = await listClaims(
    tx,
    installs.map(({ id }) => machineKey(id)),
  );
  return new Map(
    claimed
      .filter(({ grantedAt }) => grantedAt !== null)
      .filter(({ thing, holder }) => {
        const install = ours.get(thing.id);
        const isOwn = holder.kind === INSTALL_KIND && holder.id === thing.id;
        return !isOwn && !(holder.kind === "run" && holder.id === install?.facts.orderedBy);
      })
      .map(({ thing, holder }) => [thing.id, `${holder.kind} ${holder.id}`]),
  );
}
