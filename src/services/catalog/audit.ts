import type { JsonObject } from "../../kernel/lifecycle.ts";
import * as journal from "../../store/lifecycle/journal.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { doneBy } from "../call/initiator.ts";

/** Without a lifecycle, but what is done with them is audited. */
export const CATALOG_KINDS = [
  "plan",
  "cluster",
  "image",
  "cloud_init",
  "device_group",
  "install_workflow",
  "rack_profile",
  "fleet_site",
  "fleet_profile",
  "fleet_roce",
  "secret_key",
  "replica",
] as const;
export type CatalogKind = (typeof CATALOG_KINDS)[number];

/** Journals that an entry of a catalogue came, changed or went; the caller holds its lock. */
export async function audit(
  tx: Transaction,
  caller: Caller,
  entry: {
    readonly kind: CatalogKind;
    readonly id: string;
    readonly type: "created" | "changed" | "deleted";
    readonly data: JsonObject;
  },
): Promise<void> {
  const version = 1 + (await journal.lastVersion(tx, entry));
  await journal.append(tx, [
    { ...entry, ...doneBy(caller), version, from: null, to: null, owner: "caller", reason: null },
  ]);
  journal.announce(tx);
}
