import { AppError } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import type { InstallRecord } from "../../../store/install/installs.ts";
import { recordChange } from "../../../store/lifecycle/changes.ts";
import { storeOf } from "../../../store/lifecycle/things.ts";
import type { Caller } from "../../call/caller.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";
import { doneBy } from "../../call/initiator.ts";
import { getInstall, lockInstall } from "../installs.ts";
import { INSTALL_KIND } from "../key.ts";

/** The columns of a node whose next boot is expected from now on. */
export const armedBy = (what: string, now: Date): JsonObject => ({ armed_at: now.toISOString(), armed_by: what });

/** Whether the node is led on by its next boot. */
const awaitsBoot = ({ state, facts }: InstallRecord): boolean =>
  state.name === "pending" || state.name === "deprovisioning" || (state.name === "installing" && facts.attemptFailed);

/** An operator expects the machine to boot from now on: its next boot gets its script, and what that boot reports counts. */
export async function armNode(deps: ServiceDeps, caller: Caller, id: string): Promise<InstallRecord> {
  await deps.db.transaction(async (tx) => {
    const install = await lockInstall(tx, id);
    if (!awaitsBoot(install))
      throw new AppError(
        "failed_precondition",
        `node ${id} is ${install.state.name}, so it waits for no boot and cannot be armed`,
        {
          field: "id",
          next: `millwright explain node ${id}`,
        },
      );
    await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
      id,
      type: "armed",
      ...doneBy(caller),
      data: {},
      set: armedBy("operator", nowOf(deps)),
    });
  });
  return getInstall(deps, id);
}
