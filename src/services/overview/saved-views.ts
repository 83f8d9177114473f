import { AppError } from "../../kernel/errors.ts";
import { parseOrderBy } from "../../kernel/filter/order-by.ts";
import { parseFilter } from "../../kernel/filter/parse-filter.ts";
import { isPrintable } from "../../kernel/printable.ts";
import * as store from "../../store/access/saved-views.ts";
import * as journal from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { filterFieldsOf, sortFieldsOf } from "../../store/postgres/list-fields.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { groupsFrom } from "./group-by.ts";
import { listingOf, type OverviewDeps } from "./listings.ts";
import { SAVED_VIEW_KIND } from "./saved-view-kind.ts";

export type { SavedView } from "../../store/access/saved-views.ts";

const LONGEST_NAME = 80;
const MOST_VIEWS = 100;

/** Views are their owner's own: who has signed in under the same name sees the same. */
const ownerOf = ({ name }: Caller): string => name ?? "";

export async function listSavedViews(deps: OverviewDeps, caller: Caller, kind: string): Promise<store.SavedView[]> {
  if (kind !== "") listingOf(deps, kind);
  return store.listSavedViews(deps.lists ?? deps.db, ownerOf(caller), kind);
}

export async function saveView(
  deps: OverviewDeps,
  caller: Caller,
  view: Omit<store.SavedView, "savedAt">,
): Promise<store.SavedView> {
  checkView(deps, view);
  const owner = ownerOf(caller);
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [thingOf(owner)]);
    const kept = await store.listSavedViews(tx, owner, "");
    const isNew = !kept.some(({ kind, name }) => kind === view.kind && name === view.name);
    if (isNew && kept.length >= MOST_VIEWS)
      throw new AppError("exhausted", `${MOST_VIEWS} views are kept already, and a caller keeps no more`, {
        next: "delete one that is not needed any more",
      });
    const saved = await store.saveView(tx, owner, view);
    await note(tx, caller, isNew ? "created" : "replaced", saved);
    return saved;
  });
}

/** Asking again is harmless. */
export async function deleteSavedView(deps: OverviewDeps, caller: Caller, kind: string, name: string): Promise<void> {
  listingOf(deps, kind);
  const owner = ownerOf(caller);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [thingOf(owner)]);
    if (await store.deleteSavedView(tx, owner, kind, name)) await note(tx, caller, "deleted", { kind, name });
  });
}

function checkView(deps: OverviewDeps, { kind, name, filter, orderBy, groupBy }: Omit<store.SavedView, "savedAt">) {
  if (name.trim() === "" || name.length > LONGEST_NAME || !isPrintable(name))
    throw new AppError("invalid_argument", `view.name: between 1 and ${LONGEST_NAME} printable characters`, {
      field: "view.name",
    });
  const { fields } = listingOf(deps, kind);
  const filterFields = filterFieldsOf(fields);
  parseFilter(filter, filterFields, () => nowOf(deps));
  parseOrderBy(orderBy, sortFieldsOf(fields));
  groupsFrom(groupBy, filterFields);
}

/** Views have no lifecycle, but what is done with them is audited: their names alone, under their owner. */
const thingOf = (owner: string) => ({ kind: SAVED_VIEW_KIND, id: owner === "" ? "-" : owner });

async function note(
  tx: Parameters<typeof journal.append>[0],
  caller: Caller,
  type: "created" | "replaced" | "deleted",
  { kind, name }: Pick<store.SavedView, "kind" | "name">,
): Promise<void> {
  const entry = { ...thingOf(ownerOf(caller)), from: null, to: null, owner: "caller", ...doneBy(caller), reason: null };
  await journal.append(tx, [{ ...entry, version: 1, type, data: { of: kind, name } }]);
  journal.announce(tx);
}
