import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";

/**
 * The simulator's memory: the latest value of each key, written through to one append-only file.
 *
 * `put` returns after the write has reached the kernel, so a killed process loses nothing that it has answered. There is no
 * fsync: the simulated devices need not survive a power cut of the machine that simulates them.
 */
export interface StateJournal {
  get(key: string): unknown;
  keys(prefix: string): string[];
  /** The value must not be changed afterwards; put a new one instead. */
  put(key: string, value: unknown): void;
  delete(key: string): void;
  close(): void;
}

/** Rewrite once this many lines are superseded, so that the file stays within a small factor of what it says. */
const SUPERSEDED_LINES_KEPT = 10_000;

export function openStateJournal(file: string, supersededKept = SUPERSEDED_LINES_KEPT): StateJournal {
  const values = new Map<string, unknown>();
  let lines = replay(file, values);
  compact();
  let descriptor = openSync(file, "a", 0o600);

  function compact(): void {
    const text = [...values].map(([key, value]) => lineOf(key, value)).join("");
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    lines = values.size;
  }

  function append(key: string, value: unknown): void {
    writeWhole(descriptor, lineOf(key, value));
    remember(values, key, value);
    lines += 1;
    if (lines - values.size <= supersededKept) return;
    closeSync(descriptor);
    compact();
    descriptor = openSync(file, "a", 0o600);
  }

  return {
    get: (key) => values.get(key),
    keys: (prefix) => [...values.keys()].filter((key) => key.startsWith(prefix)),
    put: append,
    delete(key) {
      if (values.has(key)) append(key, null);
    },
    close: () => closeSync(descriptor),
  };
}

const lineOf = (key: string, value: unknown) => `${JSON.stringify([key, value])}\n`;

/** Null stands for a key that was deleted. */
function remember(values: Map<string, unknown>, key: string, value: unknown): void {
  if (value === null) values.delete(key);
  else values.set(key, value);
}

/** All of the line or none of it: half a line (a full disk) would spoil the next one as well. */
function writeWhole(descriptor: number, line: string): void {
  const bytes = Buffer.from(line);
  const start = fstatSync(descriptor).size;
  try {
    let written = 0;
    while (written < bytes.length) written += writeSync(descriptor, bytes, written);
  } catch (error) {
    ftruncateSync(descriptor, start);
    throw error;
  }
}

function replay(file: string, values: Map<string, unknown>): number {
  if (!existsSync(file)) return 0;
  const lines = readFileSync(file, "utf8").split("\n");
  // What follows the last newline is a line whose writer was killed within it; its command was never answered.
  lines.pop();
  for (const [index, line] of lines.entries()) {
    const entry = parseEntry(line);
    if (entry === undefined) {
      throw new Error(`${file}: line ${index + 1} is not readable; move the file away to start with fresh devices`);
    }
    remember(values, ...entry);
  }
  return lines.length;
}

function parseEntry(line: string): readonly [string, unknown] | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    if (Array.isArray(entry) && entry.length === 2 && typeof entry[0] === "string") return [entry[0], entry[1]];
  } catch {
    // Said by the caller, with the number of the line.
  }
  return undefined;
}
