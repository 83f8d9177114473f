import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { CatalogTable } from "../../store/catalog/catalog-table.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { audit } from "./audit.ts";

/** What plans and machines refer to by name: it is made, listed, and forgotten once nothing refers to it. */
export interface Catalog<Row> {
  readonly kind: "cluster" | "image" | "cloud_init" | "fleet_site";
  /** The noun of its commands, where it is not the kind. */
  readonly noun?: string;
  /** With its article: an image. */
  readonly called: string;
  readonly table: CatalogTable<Row>;
  /** What keeps an entry: what it does with it, and the command that shows it. */
  findUser(tx: Transaction, name: string): Promise<{ readonly does: string; readonly next: string } | undefined>;
  remove(deps: ServiceDeps, tx: Transaction, name: string): Promise<void>;
}

interface NewEntry {
  readonly name: string;
  /** Returns whether the row is new. */
  insert(tx: Transaction): Promise<boolean>;
  /** What the journal tells of it. */
  readonly data: JsonObject;
}

export async function createEntry<Row>(
  deps: ServiceDeps,
  caller: Caller,
  { kind, noun = kind, called, table }: Catalog<Row>,
  { name, insert, data }: NewEntry,
): Promise<Row> {
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id: name }]);
    if (!(await insert(tx))) {
      throw new AppError("already_exists", `name: ${called} ${name} exists already`, {
        field: "name",
        next: `millwright ${noun} list`,
      });
    }
    await audit(tx, caller, { kind, id: name, type: "created", data });
    const [row] = await table.list(tx, { names: [name] });
    if (!row) throw new Error(`${kind} ${name} was written and is not there`);
    return row;
  });
}

interface EntryChange<Row> {
  readonly name: string;
  /** Returns what the journal tells of it. */
  change(tx: Transaction, before: Row): Promise<JsonObject>;
}

export async function changeEntry<Row>(
  deps: ServiceDeps,
  caller: Caller,
  { kind, table }: Catalog<Row>,
  { name, change }: EntryChange<Row>,
): Promise<Row> {
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id: name }]);
    const [before] = await table.list(tx, { names: [name] });
    if (!before) throw unknownEntry({ kind }, name);
    await audit(tx, caller, { kind, id: name, type: "changed", data: await change(tx, before) });
    const [row] = await table.list(tx, { names: [name] });
    return row ?? before;
  });
}

const unknownEntry = ({ kind, noun = kind }: Pick<Catalog<unknown>, "kind" | "noun">, name: string): AppError =>
  new AppError("not_found", `${kind} ${name} does not exist`, { field: "name", next: `millwright ${noun} list` });

/** Filtered and sorted as every list; in the order of their names unless the request says. */
export const pageEntries = <Row>(
  deps: ServiceDeps,
  { table }: Catalog<Row>,
  request: ListRequest,
): Promise<ListPage<Row>> => pageList(deps, table.listing, request, { show: (row) => row });

export async function deleteEntry<Row>(
  deps: ServiceDeps,
  caller: Caller,
  catalog: Catalog<Row>,
  name: string,
): Promise<void> {
  const { kind, table } = catalog;
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id: name }]);
    // A run that is being started holds the entry: only after it is there can we tell that nobody needs it.
    if (!(await table.holdAlone(tx, name))) throw unknownEntry(catalog, name);
    const user = await catalog.findUser(tx, name);
    if (user) {
      throw new AppError("failed_precondition", `${kind} ${name} cannot be deleted: ${user.does} it`, {
        field: "name",
        next: user.next,
      });
    }
    await catalog.remove(deps, tx, name);
    await audit(tx, caller, { kind, id: name, type: "deleted", data: {} });
  });
}

export const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });
