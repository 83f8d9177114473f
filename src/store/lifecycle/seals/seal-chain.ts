import { createHash, createHmac, timingSafeEqual } from "node:crypto";

const LEAF_BYTES = 32;

/** What a seal says; its code covers all of it, and the code of the seal before. */
export interface SealBody {
  readonly number: number;
  /** The last entry that it covers. */
  readonly to: string;
  readonly entries: number;
  /** A hash of each entry, one after the other. */
  readonly leaves: Buffer;
  readonly sealedAt: Date;
}

export const NO_SEAL: Buffer = Buffer.alloc(0);

/** The newest seal as one text: who has it can tell later whether the journal is still the same up to there. */
export const headText = ({ number, mac }: { readonly number: number; readonly mac: Buffer }): string =>
  `${number}:${mac.toString("hex")}`;

const codeOf = (key: Buffer, words: readonly unknown[]): Buffer =>
  createHmac("sha256", key).update(JSON.stringify(words)).digest();

export const sealCode = (key: Buffer, before: Buffer, { number, to, entries, leaves, sealedAt }: SealBody): Buffer =>
  codeOf(key, [
    "journal seal 1",
    ...[number, before.toString("hex"), to, entries],
    ...[createHash("sha256").update(leaves).digest("hex"), sealedAt.getTime()],
  ]);

export const removalCode = (key: Buffer, number: number, removed: Buffer): Buffer =>
  codeOf(key, ["journal removal 1", number, removed.toString("hex")]);

export const isCode = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

export const leavesOf = (leaves: Buffer): string[] =>
  Array.from({ length: Math.floor(leaves.length / LEAF_BYTES) }, (_, at) =>
    leaves.subarray(at * LEAF_BYTES, (at + 1) * LEAF_BYTES).toString("hex"),
  );

export const isRemoved = (removed: Buffer | null, at: number): boolean =>
  removed !== null && ((removed[at >> 3] ?? 0) & (1 << (at & 7))) !== 0;

/** The same bits, and those of these entries. */
export function withRemoved(removed: Buffer | null, entries: number, places: readonly number[]): Buffer {
  const bits = Buffer.alloc(Math.ceil(entries / 8));
  removed?.copy(bits);
  for (const at of places) bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7));
  return bits;
}
