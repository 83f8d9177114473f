import type { SeedFile } from "../../capabilities/seeds/seed.ts";
import { both, directoryTime, FIRST_DESCRIPTOR, record, SECTOR, utf16 } from "./iso-records.ts";

const LAYOUT = {
  primary: FIRST_DESCRIPTOR,
  joliet: FIRST_DESCRIPTOR + 1,
  end: FIRST_DESCRIPTOR + 2,
  paths: FIRST_DESCRIPTOR + 3,
  jolietPaths: FIRST_DESCRIPTOR + 5,
  root: FIRST_DESCRIPTOR + 7,
  jolietRoot: FIRST_DESCRIPTOR + 8,
  files: FIRST_DESCRIPTOR + 9,
} as const;

interface PlacedFile extends SeedFile {
  readonly sector: number;
}

/**
 * A small read-only volume with files in its root, as ISO 9660 with Joliet names (ECMA-119): what BMCs insert as a CD, and what installers
 * find by its label. The same files make the same bytes, so that a BMC that fetches it in pieces, from several replicas, gets one volume.
 */
export function writeVolume(label: string, files: readonly SeedFile[], at: Date): Buffer {
  if (!/^[A-Z0-9_]{1,16}$/.test(label)) throw new Error(`${label} is no label of a volume`);
  let next: number = LAYOUT.files;
  const placed = files
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((file): PlacedFile => {
      const sector = next;
      next += Math.max(1, Math.ceil(file.content.length / SECTOR));
      return { ...file, sector };
    });
  const size = next;
  const volume = Buffer.alloc(size * SECTOR);
  const put = (sector: number, bytes: Buffer) => void bytes.copy(volume, sector * SECTOR);
  const time = directoryTime(at);
  put(
    LAYOUT.primary,
    descriptor({ type: 1, label, size, at, root: LAYOUT.root, paths: LAYOUT.paths, isJoliet: false }),
  );
  put(
    LAYOUT.joliet,
    descriptor({ type: 2, label, size, at, root: LAYOUT.jolietRoot, paths: LAYOUT.jolietPaths, isJoliet: true }),
  );
  put(LAYOUT.end, Buffer.from([255, ...Buffer.from("CD001"), 1]));
  for (const [at_, root] of [
    [LAYOUT.paths, LAYOUT.root],
    [LAYOUT.jolietPaths, LAYOUT.jolietRoot],
  ] as const) {
    put(at_, pathTable(root, "little"));
    put(at_ + 1, pathTable(root, "big"));
  }
  put(
    LAYOUT.root,
    directory(LAYOUT.root, placed, time, ({ index }) => Buffer.from(`FILE${index}.;1`, "ascii")),
  );
  put(
    LAYOUT.jolietRoot,
    directory(LAYOUT.jolietRoot, placed, time, ({ name }) => utf16(name)),
  );
  for (const { sector, content } of placed) put(sector, content);
  return volume;
}

interface DescriptorParts {
  readonly type: 1 | 2;
  readonly label: string;
  /** In sectors. */
  readonly size: number;
  readonly at: Date;
  readonly root: number;
  readonly paths: number;
  readonly isJoliet: boolean;
}

/** A volume descriptor: by the offsets of ECMA-119, 8.4 and 8.5. */
function descriptor({ type, label, size, at, root, paths, isJoliet }: DescriptorParts): Buffer {
  const sector = Buffer.alloc(SECTOR);
  const text = (offset: number, length: number, value: string) => {
    const field = isJoliet ? utf16(value.padEnd(Math.floor(length / 2), " ")) : Buffer.from(value.padEnd(length, " "));
    field.copy(sector, offset, 0, length);
  };
  const stamp = `${at.toISOString().replace(/\D/g, "").slice(0, 14)}00`;
  sector[0] = type;
  sector.write("CD001", 1, "ascii");
  sector[6] = 1;
  text(8, 32, "");
  text(40, 32, label);
  both(size, 4).copy(sector, 80);
  // UCS-2, level 3: the escape sequence by which Joliet is known.
  if (isJoliet) sector.write("%/E", 88, "ascii");
  both(1, 2).copy(sector, 120);
  both(1, 2).copy(sector, 124);
  both(SECTOR, 2).copy(sector, 128);
  both(PATH_TABLE_BYTES, 4).copy(sector, 132);
  sector.writeUInt32LE(paths, 140);
  sector.writeUInt32BE(paths + 1, 148);
  record({ sector: root, length: SECTOR, time: directoryTime(at), isDirectory: true, name: Buffer.from([0]) }).copy(
    sector,
    156,
  );
  text(190, 128, "");
  text(318, 128, "");
  text(446, 128, "");
  text(574, 128, "MILLWRIGHT");
  text(702, 37, "");
  text(739, 37, "");
  text(776, 37, "");
  for (const offset of [813, 830]) sector.write(stamp, offset, "ascii");
  for (const offset of [847, 864]) sector.write("0".repeat(16), offset, "ascii");
  sector[881] = 1;
  return sector;
}

const PATH_TABLE_BYTES = 10;

/** The root alone. */
function pathTable(root: number, order: "little" | "big"): Buffer {
  const table = Buffer.alloc(PATH_TABLE_BYTES);
  table[0] = 1;
  if (order === "little") {
    table.writeUInt32LE(root, 2);
    table.writeUInt16LE(1, 6);
  } else {
    table.writeUInt32BE(root, 2);
    table.writeUInt16BE(1, 6);
  }
  return table;
}

function directory(
  self: number,
  files: readonly PlacedFile[],
  time: Buffer,
  nameOf: (file: PlacedFile & { readonly index: number }) => Buffer,
): Buffer {
  const itself = (name: number) =>
    record({ sector: self, length: SECTOR, time, isDirectory: true, name: Buffer.from([name]) });
  const entries = files.map((file, index) =>
    record({
      sector: file.sector,
      length: file.content.length,
      time,
      isDirectory: false,
      name: nameOf({ ...file, index }),
    }),
  );
  const bytes = Buffer.concat([itself(0), itself(1), ...entries]);
  if (bytes.length > SECTOR) throw new Error("too many files for one sector of a directory");
  return bytes;
}
