/** The parts of ISO 9660 (ECMA-119) that writing a volume and adding to one have in common. */
export const SECTOR = 2_048;
/** Sectors 0 to 15 are the system area; the descriptors follow. */
export const FIRST_DESCRIPTOR = 16;

export const sectorsOf = (bytes: number): number => Math.ceil(bytes / SECTOR);

/** As Joliet has names. */
export const utf16 = (text: string): Buffer => Buffer.from(text, "utf16le").swap16();

/** A number as ISO 9660 has most of them: little-endian, then big-endian. */
export function both(value: number, bytes: 2 | 4): Buffer {
  const buffer = Buffer.alloc(2 * bytes);
  buffer.writeUIntLE(value, 0, bytes);
  buffer.writeUIntBE(value, bytes, bytes);
  return buffer;
}

export const directoryTime = (at: Date): Buffer =>
  Buffer.from([
    at.getUTCFullYear() - 1_900,
    at.getUTCMonth() + 1,
    at.getUTCDate(),
    at.getUTCHours(),
    at.getUTCMinutes(),
    at.getUTCSeconds(),
    0,
  ]);

export interface DirectoryRecord {
  readonly sector: number;
  /** In bytes. */
  readonly length: number;
  readonly time: Buffer;
  readonly isDirectory: boolean;
  readonly name: Buffer;
  /** What follows the name, such as the fields of Rock Ridge. */
  readonly more?: Buffer;
}

export function record({ sector, length, time, isDirectory, name, more }: DirectoryRecord): Buffer {
  const named = 33 + name.length + (name.length % 2 === 0 ? 1 : 0);
  const used = named + (more?.length ?? 0);
  const bytes = Buffer.alloc(used + (used % 2));
  bytes[0] = bytes.length;
  both(sector, 4).copy(bytes, 2);
  both(length, 4).copy(bytes, 10);
  time.copy(bytes, 18);
  bytes[25] = isDirectory ? 2 : 0;
  both(1, 2).copy(bytes, 28);
  bytes[32] = name.length;
  name.copy(bytes, 33);
  more?.copy(bytes, named);
  return bytes;
}
