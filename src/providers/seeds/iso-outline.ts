import { createHash } from "node:crypto";
import { FIRST_DESCRIPTOR, SECTOR, sectorsOf } from "./iso-records.ts";

/** Exactly as many bytes as are asked for. */
export type ReadAt = (offset: number, length: number) => Promise<Buffer>;

/** No seed can be written into it. The message goes on after "the image at … ". */
export class UnfitIso extends Error {
  override readonly name = "UnfitIso";
}

/** One tree of directories: that of the primary descriptor, or one for other names such as Joliet's. */
export interface IsoTree {
  /** Of its descriptor. */
  readonly sector: number;
  readonly descriptor: Buffer;
  readonly isJoliet: boolean;
  readonly root: IsoRoot;
}

export interface IsoRoot {
  readonly sector: number;
  /** The records without `.` and `..`, in the order in which they are. */
  readonly entries: readonly Buffer[];
  readonly self: Buffer;
  readonly parent: Buffer;
}

/** What must be known of a volume in order to add files to its root. */
export interface IsoOutline {
  readonly bytes: number;
  /** Behind everything that belongs to the volume. */
  readonly end: number;
  readonly trees: readonly IsoTree[];
  /** Of all that was read: another one for another volume. */
  readonly digest: string;
}

/** More than any volume has. */
const MOST_DESCRIPTORS = 32;
const MOST_ROOT_BYTES = 256 * 1_024;
/** Sectors have numbers of 32 bits, also those that are added: for these there is a gigabyte. */
const MOST_BYTES = 2 ** 32 * SECTOR - 2 ** 30;
const JOLIET_ESCAPES = ["%/@", "%/C", "%/E"];
/** Where programs that check a medium note its sum, which a file more would make wrong. */
const APPLICATION_USE = { start: 883, end: 1_395 } as const;

/** @throws UnfitIso when nothing can be added to it. */
export async function readOutline(readAt: ReadAt, bytes: number): Promise<IsoOutline> {
  const first = FIRST_DESCRIPTOR * SECTOR;
  const length = Math.min(MOST_DESCRIPTORS * SECTOR, Math.floor((bytes - first) / SECTOR) * SECTOR);
  if (length < 2 * SECTOR) throw new UnfitIso("is too short for an ISO 9660 volume");
  if (bytes > MOST_BYTES) throw new UnfitIso("is too long for an ISO 9660 volume with a seed in it");
  const area = await readAt(first, length);
  const found = descriptorsIn(area);
  const digest = createHash("sha256").update(area);
  const roots = new Map<number, Promise<IsoRoot>>();
  const rootAt = (sector: number, size: number) => {
    const known = roots.get(sector) ?? readRoot(readAt, { sector, size, bytes }, (read) => digest.update(read));
    roots.set(sector, known);
    return known;
  };
  const trees: IsoTree[] = [];
  for (const { sector, descriptor } of found) {
    const isJoliet = descriptor[0] === 2 && JOLIET_ESCAPES.includes(descriptor.toString("latin1", 88, 91));
    const root = await rootAt(descriptor.readUInt32LE(158), descriptor.readUInt32LE(166));
    trees.push({ sector, descriptor, isJoliet, root });
  }
  const volume = Math.max(...found.map(({ descriptor }) => descriptor.readUInt32LE(80) * SECTOR));
  if (volume > sectorsOf(bytes) * SECTOR) throw new UnfitIso("is shorter than its volume: it was cut off");
  checkNames(trees);
  if (found.some(({ descriptor }) => pathTablesOf(descriptor).some(({ at }) => at + 10 > bytes)))
    throw new UnfitIso("has path tables outside of itself");
  return { bytes, end: sectorsOf(bytes) * SECTOR, trees, digest: digest.digest("hex") };
}

/** Where a descriptor's tables of all directories are, in bytes: up to two of each order of bytes. */
export const pathTablesOf = (descriptor: Buffer): { readonly at: number; readonly isLittle: boolean }[] =>
  [
    ...[descriptor.readUInt32LE(140), descriptor.readUInt32LE(144)].map((sector) => ({ sector, isLittle: true })),
    ...[descriptor.readUInt32BE(148), descriptor.readUInt32BE(152)].map((sector) => ({ sector, isLittle: false })),
  ].flatMap(({ sector, isLittle }) => (sector === 0 ? [] : [{ at: sector * SECTOR, isLittle }]));

interface FoundDescriptor {
  readonly sector: number;
  readonly descriptor: Buffer;
}

function descriptorsIn(area: Buffer): FoundDescriptor[] {
  const sectors = Array.from({ length: area.length / SECTOR }, (_, at) =>
    area.subarray(at * SECTOR, (at + 1) * SECTOR),
  );
  const nameOf = (sector: Buffer) => sector.toString("latin1", 1, 6);
  const end = sectors.findIndex((sector) => nameOf(sector) === "CD001" && sector[0] === 255);
  const own = sectors.slice(0, end).filter((sector) => nameOf(sector) === "CD001");
  if (end === -1 || own[0]?.[0] !== 1) throw new UnfitIso("is not an ISO 9660 volume");
  if (sectors.some((sector) => /^NSR0[23]$/.test(nameOf(sector))))
    throw new UnfitIso("also has a UDF file system, in which its installer would not see the seed");
  const { start, end: last } = APPLICATION_USE;
  if (own[0].toString("latin1", start, last).includes("ISO MD5SUM"))
    throw new UnfitIso("has a checksum in itself (implantisomd5), which a seed would break: make it without one");
  return sectors
    .map((descriptor, at) => ({ sector: FIRST_DESCRIPTOR + at, descriptor }))
    .slice(0, end)
    .filter(({ descriptor }) => nameOf(descriptor) === "CD001" && (descriptor[0] === 1 || descriptor[0] === 2))
    .map((each) => {
      if (each.descriptor.readUInt16LE(128) !== SECTOR) throw new UnfitIso("has blocks of another size than 2048");
      return each;
    });
}

async function readRoot(
  readAt: ReadAt,
  { sector, size, bytes }: { readonly sector: number; readonly size: number; readonly bytes: number },
  onRead: (read: Buffer) => void,
): Promise<IsoRoot> {
  if (size === 0 || size > MOST_ROOT_BYTES || sector * SECTOR + size > bytes) throw unreadableRoot();
  const directory = await readAt(sector * SECTOR, size);
  onRead(directory);
  const [self, parent, ...entries] = recordsOf(directory);
  if (self === undefined || parent === undefined || nameIn(self)[0] !== 0 || nameIn(parent)[0] !== 1)
    throw unreadableRoot();
  return { sector, self, parent, entries };
}

const unreadableRoot = (): UnfitIso => new UnfitIso("has a root directory that cannot be read");

/** No record crosses the border of a sector. */
function recordsOf(directory: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let start = 0; start < directory.length; start += SECTOR) {
    const end = Math.min(start + SECTOR, directory.length);
    for (let at = start; at < end && directory[at] !== 0; ) {
      const length = directory[at] ?? 0;
      if (length < 34 || at + length > end || 33 + (directory[at + 32] ?? 0) > length) throw unreadableRoot();
      records.push(directory.subarray(at, at + length));
      at += length;
    }
  }
  return records;
}

export const nameIn = (entry: Buffer): Buffer => entry.subarray(33, 33 + (entry[32] ?? 0));

interface SystemUse {
  readonly signature: string;
  readonly bytes: Buffer;
}

/** The fields behind a record's name (SUSP, IEEE P1281). */
export function systemUseOf(entry: Buffer, skip: number): SystemUse[] {
  const length = entry[32] ?? 0;
  const fields: SystemUse[] = [];
  for (let at = 33 + length + (length % 2 === 0 ? 1 : 0) + skip; at + 4 <= entry.length; ) {
    const size = entry[at + 2] ?? 0;
    if (size < 4 || at + size > entry.length) break;
    fields.push({ signature: entry.toString("latin1", at, at + 2), bytes: entry.subarray(at, at + size) });
    at += size;
  }
  return fields;
}

/** How a tree keeps long names as Rock Ridge; undefined: it does not. */
export interface RockRidge {
  /** Bytes before the fields in every record but the first. */
  readonly skip: number;
  /** Of a field PX, which is longer in newer versions. */
  readonly attributes: 36 | 44;
}

export function rockRidgeOf({ self }: Pick<IsoRoot, "self">): RockRidge | undefined {
  const fields = systemUseOf(self, 0);
  const shared = fields.find(({ signature, bytes }) => signature === "SP" && bytes.length >= 7);
  const attributes = fields.find(({ signature }) => signature === "PX");
  if (shared === undefined || attributes === undefined) return undefined;
  return { skip: shared.bytes[6] ?? 0, attributes: attributes.bytes.length >= 44 ? 44 : 36 };
}

function checkNames(trees: readonly IsoTree[]): void {
  if (trees.some(({ isJoliet, root }) => isJoliet && root.entries.some((entry) => nameIn(entry).length % 2 === 1)))
    throw new UnfitIso("has Joliet names of half characters, which cannot be read");
  if (trees.some(({ isJoliet, root }) => isJoliet || rockRidgeOf(root) !== undefined)) return;
  throw new UnfitIso("has neither Rock Ridge nor Joliet names: its installer would not find the seed by its name");
}
