import type { Transaction } from "../../postgres/database.ts";
import { failPoint } from "../../postgres/fail-points.ts";
import { leavesOf, removalCode, withRemoved } from "./seal-chain.ts";

/** An entry that retention removes: the seal that covers it, and its hash. */
export type RemovedEntry = readonly [seal: number, leaf: string];

interface Row {
  readonly number: number;
  readonly entries: number;
  readonly leaves: Buffer;
  readonly removed: Buffer | null;
}

/**
 * Signs that these entries went by retention, so that they are not missed. One that is not what was sealed is not among its seal's hashes:
 * nothing is signed for it, and it stays missed.
 */
export async function signRemovals(tx: Transaction, key: Buffer, gone: readonly RemovedEntry[]): Promise<void> {
  if (gone.length === 0) return;
  const bySeal = Map.groupBy(gone, ([seal]) => seal);
  const seals = await tx.query<Row>(
    "select number, entries, leaves, removed from journal_seals where number = any($1) order by number for update",
    [[...bySeal.keys()]],
  );
  const signed = seals.map(({ number, entries, leaves, removed }) => {
    const places = new Map(leavesOf(leaves).map((leaf, at) => [leaf, at]));
    const found = (bySeal.get(number) ?? []).flatMap(([, leaf]) => places.get(leaf) ?? []);
    const bits = withRemoved(removed, entries, found);
    return { number, bits, code: removalCode(key, number, bits) };
  });
  await tx.execute(
    `update journal_seals s set removed = r.removed, removed_mac = r.mac
       from unnest($1::bigint[], $2::bytea[], $3::bytea[]) as r (number, removed, mac) where s.number = r.number`,
    [signed.map(({ number }) => number), signed.map(({ bits }) => bits), signed.map(({ code }) => code)],
  );
  failPoint("journal-seals:removals-signed");
}
