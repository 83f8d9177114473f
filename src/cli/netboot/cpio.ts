/** One entry of an archive. Directories above it need not be named. */
export interface CpioEntry {
  /** Without a slash at its beginning. */
  readonly path: string;
  readonly type: "file" | "directory" | "character_device";
  readonly permissions: number;
  readonly data?: Uint8Array;
  /** Major and minor number of a device. */
  readonly device?: readonly [major: number, minor: number];
}

const TYPE_BITS = { file: 0o100_000, directory: 0o040_000, character_device: 0o020_000 } as const;
const TRAILER = "TRAILER!!!";

/** An archive in the `newc` format, which the kernel unpacks: the same entries always give the same bytes. */
export function writeCpio(entries: readonly CpioEntry[]): Buffer {
  const all = withDirectories(entries);
  const parts = all.flatMap((entry, index) => partsOf(entry, index + 1));
  return Buffer.concat([...parts, ...partsOf({ path: TRAILER, type: "file", permissions: 0 }, 0)]);
}

/** The kernel makes no directory by itself: each comes before what is in it. */
function withDirectories(entries: readonly CpioEntry[]): readonly CpioEntry[] {
  const byPath = new Map<string, CpioEntry>();
  for (const entry of entries) {
    const names = entry.path.split("/");
    if (names.some((name) => name === "" || name === "." || name === ".."))
      throw new Error(`${JSON.stringify(entry.path)} is no path inside an archive`);
    for (let depth = 1; depth < names.length; depth += 1) {
      const path = names.slice(0, depth).join("/");
      if (!byPath.has(path)) byPath.set(path, { path, type: "directory", permissions: 0o755 });
    }
    byPath.set(entry.path, entry);
  }
  return [...byPath.values()];
}

const HEADER_LENGTH = 110;

function partsOf({ path, type, permissions, data = new Uint8Array(), device = [0, 0] }: CpioEntry, inode: number) {
  const name = Buffer.from(`${path}\0`);
  const isTrailer = inode === 0;
  const fields = [
    inode,
    isTrailer ? 0 : TYPE_BITS[type] | permissions,
    0, // owner
    0, // group
    type === "directory" ? 2 : 1, // links
    0, // time: none, so that archives can be compared
    data.length,
    0, // the device that it lies on
    0,
    ...device,
    name.length,
    0, // checksum: unused in this format
  ];
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, "0")).join("")}`);
  return [header, name, padding(HEADER_LENGTH + name.length), data, padding(data.length)];
}

const padding = (length: number): Buffer => Buffer.alloc((4 - (length % 4)) % 4);
