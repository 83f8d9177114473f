import type { JsonObject } from "../kernel/lifecycle.ts";
import type { Transaction } from "../store/database.ts";
import * as journal from "../store/journal.ts";
import type { Caller } from "./caller.ts";
import { doneBy } from "./initiator.ts";

/** Without a lifecycle, but what is done with them is audited. */
export const CATALOG_KINDS = ["plan", "cluster", "image"] as const;
export type CatalogKind = (typeof CATALOG_KINDS)[number];

/** Journals that an entry of a catalogue came or went; the caller holds its lock. */
export async function audit(
  tx: Transaction,
  caller: Caller,
  entry: {
    readonly kind: CatalogKind;
    readonly id: string;
    readonly type: "created" | "deleted";
    readonly data: JsonObject;
  },
): Promise<void> {
  const version = entry.type === "created" ? 1 : 2;
  await journal.append(tx, [
    { ...entry, ...doneBy(caller), version, from: null, to: null, owner: "caller", reason: null },
  ]);
  await journal.announce(tx);
}
