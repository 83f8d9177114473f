import { AppError } from "../../../kernel/errors.ts";
import { isPrintable } from "../../../kernel/printable.ts";
import { applyVerb } from "../../../store/lifecycle/verbs.ts";
import type { Caller } from "../../call/caller.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { doneBy } from "../../call/initiator.ts";
import { CONFIRM_ERASED, getInstall, type InstallRecord, lockInstall } from "../installs.ts";
import { INSTALL_KIND } from "../key.ts";

const LONGEST_COMMENT = 1_024;

/** An operator vouches that the disks of a node are erased, where no boot of it could prove that. The node retires. */
export async function confirmErased(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  comment: string,
): Promise<InstallRecord> {
  if (comment.length > LONGEST_COMMENT || !isPrintable(comment))
    throw new AppError("invalid_argument", `comment: at most ${LONGEST_COMMENT} printable characters`, {
      field: "comment",
    });
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
