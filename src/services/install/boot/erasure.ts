import { AppError } from "../../../kernel/errors.ts";
import { applyVerb } from "../../../store/lifecycle/verbs.ts";
import type { Caller } from "../../call/caller.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { doneBy } from "../../call/initiator.ts";
import { getInstall, type InstallRecord, lockInstall } from "../installs.ts";
import { CONFIRM_ERASED, INSTALL_KIND } from "../key.ts";
import { checkComment } from "../state/comment.ts";

/** An operator vouches that the disks of a node are erased, where no boot of it could prove that. The node retires. */
export async function confirmErased(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  comment: string,
): Promise<InstallRecord> {
  checkComment(comment);
  await deps.db.transaction(async (tx) => {
    const { state } = await lockInstall(tx, id);
    if (state.name !== "deprovisioning")
      throw new AppError(
        "failed_precondition",
        `node ${id} is ${state.name}: only one that is deprovisioning is erased`,
        {
          field: "id",
          next: `millwright node show ${id}`,
        },
      );
    await applyVerb(tx, deps.stores, {
      kind: INSTALL_KIND,
      id,
      owner: "caller",
      name: CONFIRM_ERASED,
      ...doneBy(caller),
      ...(comment !== "" && { message: comment }),
    });
  });
  return getInstall(deps, id);
}
