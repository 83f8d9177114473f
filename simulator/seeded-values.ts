import { hash } from "node:crypto";

/**
 * Values that follow from the seed and a name alone, never from the order in which they are asked for.
 *
 * A generator with a running state would give other serials to old devices as soon as a rack is added.
 */
export interface SeededValues {
  /** Lower-case hexadecimal digits, at most 64. */
  hex(name: string, length: number): string;
  /** From a look-alike-free alphabet, as printed on labels. */
  label(name: string, length: number): string;
  /** At least 0, less than 1. */
  fraction(name: string): number;
}

const LABEL_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTVWXYZ";

export function createSeededValues(seed: number): SeededValues {
  const digest = (name: string) => hash("sha256", `${seed}/${name}`);
  return {
    hex: (name, length) => digest(name).slice(0, length),
    label(name, length) {
      const bytes = Buffer.from(digest(name), "hex").subarray(0, length);
      return Array.from(bytes, (byte) => LABEL_ALPHABET[byte % LABEL_ALPHABET.length]).join("");
    },
    fraction: (name) => Number.parseInt(digest(name).slice(0, 12), 16) / 2 ** 48,
  };
}
