import type { SeedFile } from "../../capabilities/seeds/seed.ts";
import {
  type IsoOutline,
  type IsoRoot,
  type IsoTree,
  nameIn,
  pathTablesOf,
  rockRidgeOf,
  systemUseOf,
} from "./iso-outline.ts";
import { both, directoryTime, record, SECTOR, sectorsOf, utf16 } from "./iso-records.ts";

/** What makes another volume of one: bytes that take the place of others, and bytes behind its end. */
export interface IsoAddition {
  /** Of the whole. */
  readonly bytes: number;
  readonly patches: readonly { readonly at: number; readonly bytes: Buffer }[];
  readonly tail: { readonly at: number; readonly bytes: Buffer };
}

interface PlacedFile extends SeedFile {
  readonly sector: number;
}

/**
 * Adds files to the root of a volume. Every tree gets a new root directory behind its end, with the old entries and the new ones, and its
 * descriptor and path tables lead there. All else stays where it is, so that it boots as before. The `..` of its directories still
 * lead to the old root: systems keep that in mind themselves, and do not read it.
 *
 * The same volume and files make the same bytes, in every replica and at any time.
 */
export function addToVolume(outline: IsoOutline, files: readonly SeedFile[], at: Date): IsoAddition {
  const first = outline.end / SECTOR;
  const time = directoryTime(at);
  const sorted = files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  // The length of a directory does not depend on where its files are.
  const roots = [...new Map(outline.trees.map((tree) => [tree.root.sector, tree])).values()];
  const lengths = roots.map((tree) => directoryOf(tree, { sector: 0, files: placed(sorted, 0), time }).length);
  let next = first + lengths.reduce((sum, length) => sum + length / SECTOR, 0);
  const withPlaces = placed(sorted, next);
  next = withPlaces.reduce((end, { sector, content }) => Math.max(end, sector + sectorsNeeded(content)), next);
  const tail = Buffer.alloc((next - first) * SECTOR);
  const newRoots = new Map<number, { readonly sector: number; readonly length: number }>();
  let free = first;
  for (const [index, tree] of roots.entries()) {
    const length = lengths[index] ?? 0;
    newRoots.set(tree.root.sector, { sector: free, length });
    directoryOf(tree, { sector: free, files: withPlaces, time }).copy(tail, (free - first) * SECTOR);
    free += length / SECTOR;
  }
  for (const { sector, content } of withPlaces) content.copy(tail, (sector - first) * SECTOR);
  const patches = outline.trees.flatMap((tree) => {
    const root = newRoots.get(tree.root.sector);
    return root === undefined ? [] : patchesOf(tree, root, next);
  });
  const bytes = next * SECTOR;
  return { bytes, patches: patches.toSorted((a, b) => a.at - b.at), tail: { at: outline.end, bytes: tail } };
}

const sectorsNeeded = (content: Buffer): number => Math.max(1, sectorsOf(content.length));

function placed(files: readonly SeedFile[], from: number): PlacedFile[] {
  let next = from;
  return files.map((file) => {
    const sector = next;
    next += sectorsNeeded(file.content);
    return { ...file, sector };
  });
}

function patchesOf(
  { sector, descriptor }: IsoTree,
  root: { readonly sector: number; readonly length: number },
  sectors: number,
): { at: number; bytes: Buffer }[] {
  const changed = Buffer.from(descriptor);
  both(sectors, 4).copy(changed, 80);
  pointTo(changed, 156, root);
  const paths = pathTablesOf(descriptor).map(({ at, isLittle }) => {
    const bytes = Buffer.alloc(4);
    if (isLittle) bytes.writeUInt32LE(root.sector);
    else bytes.writeUInt32BE(root.sector);
    // The first record is that of the root.
    return { at: at + 2, bytes };
  });
  return [{ at: sector * SECTOR, bytes: changed }, ...paths];
}

/** In a record, or in the copy of one that a descriptor has. */
function pointTo(
  bytes: Buffer,
  at: number,
  { sector, length }: { readonly sector: number; readonly length: number },
): Buffer {
  both(sector, 4).copy(bytes, at + 2);
  both(length, 4).copy(bytes, at + 10);
  return bytes;
}

interface NewDirectory {
  readonly sector: number;
  readonly files: readonly PlacedFile[];
  readonly time: Buffer;
}

/** The entries stay in the order in which they were; each new one goes before the first that comes after it by name. */
function directoryOf({ root, isJoliet }: IsoTree, { sector, files, time }: NewDirectory): Buffer {
  const naming = isJoliet ? jolietNames() : primaryNames(root);
  const names = new Set(files.map(({ name }) => name));
  const entries = root.entries.filter((entry) => !names.has(naming.shownName(entry)));
  for (const file of files) {
    const { name, more } = naming.newName(
      file.name,
      entries.map((entry) => nameIn(entry)),
    );
    const added = record({ sector: file.sector, length: file.content.length, time, isDirectory: false, name, more });
    const before = entries.findIndex((entry) => Buffer.compare(nameIn(entry), name) > 0);
    entries.splice(before === -1 ? entries.length : before, 0, added);
  }
  const length = pack([root.self, root.parent, ...entries]).length;
  const own = [root.self, root.parent].map((entry) => pointTo(Buffer.from(entry), 0, { sector, length }));
  return pack([...own, ...entries]);
}

/** No record crosses the border of a sector. */
function pack(records: readonly Buffer[]): Buffer {
  const sectors: Buffer[][] = [[]];
  let used = 0;
  for (const each of records) {
    if (used + each.length > SECTOR) {
      sectors.push([]);
      used = 0;
    }
    sectors.at(-1)?.push(each);
    used += each.length;
  }
  const directory = Buffer.alloc(sectors.length * SECTOR);
  for (const [at, inSector] of sectors.entries()) Buffer.concat(inSector).copy(directory, at * SECTOR);
  return directory;
}

interface Naming {
  /** As a system that reads this tree shows the entry. */
  shownName(entry: Buffer): string;
  newName(name: string, taken: readonly Buffer[]): { readonly name: Buffer; readonly more: Buffer };
}

const withoutVersion = (name: string): string => name.replace(/\.?;\d+$/, "");

function jolietNames(): Naming {
  return {
    shownName: (entry) => withoutVersion(Buffer.from(nameIn(entry)).swap16().toString("utf16le")),
    newName: (name) => ({ name: utf16(name), more: Buffer.alloc(0) }),
  };
}

/** The names of the standard are short; Rock Ridge has the long ones beside them. */
function primaryNames(root: IsoRoot): Naming {
  const rockRidge = rockRidgeOf(root);
  return {
    shownName(entry) {
      if (rockRidge === undefined) return withoutVersion(nameIn(entry).toString("latin1")).toLowerCase();
      return systemUseOf(entry, rockRidge.skip)
        .filter(({ signature }) => signature === "NM")
        .map(({ bytes }) => bytes.toString("utf8", 5))
        .join("");
    },
    newName: (name, taken) => ({
      name: shortName(name, taken),
      more: rockRidge === undefined ? Buffer.alloc(0) : longNameOf(name, rockRidge),
    }),
  };
}

function longNameOf(name: string, { skip, attributes }: { readonly skip: number; readonly attributes: 36 | 44 }) {
  const text = Buffer.from(name, "utf8");
  const nm = Buffer.concat([Buffer.from("NM"), Buffer.from([5 + text.length, 1, 0]), text]);
  // A file that everybody may read, with one name, of root.
  const numbers = [0o100444, 1, 0, 0, ...(attributes === 44 ? [0] : [])].map((value) => both(value, 4));
  const px = Buffer.concat([Buffer.from("PX"), Buffer.from([attributes, 1]), ...numbers]);
  return Buffer.concat([Buffer.alloc(skip), px, nm]);
}

/** Eight letters, three more, and the version; no other file of the directory has the same. */
function shortName(name: string, taken: readonly Buffer[]): Buffer {
  const [stem = "", ending = ""] = name.toUpperCase().split(/\.(?=[^.]*$)/);
  const clean = (text: string, length: number) => text.replaceAll(/[^A-Z0-9_]/g, "_").slice(0, length);
  for (let number = 0; ; number += 1) {
    const start = number === 0 ? clean(stem, 8) : `${clean(stem, 4)}${String(number).padStart(4, "0")}`;
    const short = Buffer.from(`${start}.${clean(ending, 3)};1`, "latin1");
    if (!taken.some((each) => each.equals(short))) return short;
  }
}
