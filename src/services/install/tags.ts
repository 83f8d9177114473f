import { AppError } from "../../kernel/errors.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { lockInstall } from "./installs.ts";
import { INSTALL_KIND } from "./key.ts";

const MOST_TAGS = 100;

export async function addTag(deps: ServiceDeps, caller: Caller, id: string, tag: string): Promise<void> {
  await changeTags(deps, caller, id, (tags) => {
    if (tags.includes(tag))
      throw new AppError("already_exists", `Tag '${tag}' already exists on this node`, { field: "tag" });
    if (tags.length >= MOST_TAGS)
      throw new AppError("failed_precondition", `a node has at most ${MOST_TAGS} tags`, { field: "tag" });
    return [...tags, tag].sort();
  });
}

export async function removeTag(deps: ServiceDeps, caller: Caller, id: string, tag: string): Promise<void> {
  await changeTags(deps, caller, id, (tags) => {
    if (!tags.includes(tag)) throw new AppError("not_found", `Tag '${tag}' not found on this node`, { field: "tag" });
    return tags.filter((each) => each !== tag);
  });
}

async function changeTags(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  change: (tags: readonly string[]) => readonly string[],
): Promise<void> {
  await deps.db.transaction(async (tx) => {
    const install = await lockInstall(tx, id);
    const tags = change(install.tags);
    await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
      id,
      type: "tags_changed",
      ...doneBy(caller),
      data: { tags },
      set: { tags },
      // Nothing that decides about a node reads its tags.
      touchesBasis: false,
    });
  });
}
