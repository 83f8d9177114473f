import { hash } from "node:crypto";

const SECTOR = 2_048;
const AT = {
  primary: 16,
  joliet: 17,
  end: 18,
  paths: 19,
  jolietPaths: 21,
  root: 23,
  jolietRoot: 24,
  file: 25,
} as const;
const SECTORS = 26;

/**
 * An installation medium as a file: a small ISO 9660 volume with Joliet names (ECMA-119) and one file, which says what it is. Servers that
 * write something into images can write into it.
 */
export function mediumContent(ref: string): Buffer {
  const text = Buffer.from(`The installation medium of ${ref}, for simulated machines.\n`);
  const volume = Buffer.alloc(SECTORS * SECTOR);
  const put = (sector: number, bytes: Buffer) => void bytes.copy(volume, sector * SECTOR);
  put(AT.primary, descriptor(1, AT.root, AT.paths));
  put(AT.joliet, descriptor(2, AT.jolietRoot, AT.jolietPaths));
  put(AT.end, Buffer.from([255, ...Buffer.from("CD001"), 1]));
  for (const [paths, root] of [
    [AT.paths, AT.root],
    [AT.jolietPaths, AT.jolietRoot],
  ] as const) {
    put(paths, Buffer.from([1, 0, root, 0, 0, 0, 1, 0, 0, 0]));
    put(paths + 1, Buffer.from([1, 0, 0, 0, 0, root, 0, 1, 0, 0]));
  }
  const joliet = Buffer.from("README", "utf16le").swap16();
  put(AT.root, directory(AT.root, record(AT.file, text.length, Buffer.from("README.;1"))));
  put(AT.jolietRoot, directory(AT.jolietRoot, record(AT.file, text.length, joliet)));
  put(AT.file, text);
  return volume;
}

export const mediumDigest = (ref: string): string => `sha256:${hash("sha256", mediumContent(ref))}`;

/** Little-endian, then big-endian. */
function both(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value, at);
  bytes.writeUInt32BE(value, at + 4);
}

function descriptor(type: 1 | 2, root: number, paths: number): Buffer {
  const sector = Buffer.alloc(SECTOR);
  sector[0] = type;
  sector.write("CD001\u0001", 1, "latin1");
  const label =
    type === 1 ? Buffer.from("SIMULATED".padEnd(32)) : Buffer.from("SIMULATED".padEnd(16), "utf16le").swap16();
  label.copy(sector, 40);
  both(sector, 80, SECTORS);
  if (type === 2) sector.write("%/E", 88, "latin1");
  for (const [at, value] of [
    [120, 1],
    [124, 1],
    [128, SECTOR],
  ] as const) {
    sector.writeUInt16LE(value, at);
    sector.writeUInt16BE(value, at + 2);
  }
  both(sector, 132, 10);
  sector.writeUInt32LE(paths, 140);
  sector.writeUInt32BE(paths + 1, 148);
  record(root, SECTOR, Buffer.from([0]), true).copy(sector, 156);
  sector[881] = 1;
  return sector;
}

const directory = (self: number, entry: Buffer): Buffer =>
  Buffer.concat([record(self, SECTOR, Buffer.from([0]), true), record(self, SECTOR, Buffer.from([1]), true), entry]);

function record(sector: number, length: number, name: Buffer, isDirectory = false): Buffer {
  const bytes = Buffer.alloc(33 + name.length + ((name.length + 1) % 2));
  bytes[0] = bytes.length;
  both(bytes, 2, sector);
  both(bytes, 10, length);
  // 1 January 2026.
  Buffer.from([126, 1, 1, 0, 0, 0, 0]).copy(bytes, 18);
  bytes[25] = isDirectory ? 2 : 0;
  bytes.writeUInt16LE(1, 28);
  bytes.writeUInt16BE(1, 30);
  bytes[32] = name.length;
  name.copy(bytes, 33);
  return bytes;
}
