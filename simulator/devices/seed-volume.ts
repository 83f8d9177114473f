import { parse } from "yaml";
import { z } from "zod";

const SECTOR = 2_048;
/** Of the descriptors, one a sector. */
const DESCRIPTORS = { first: 16, last: 31 } as const;
const STAMP = "/etc/millwright-image";

const userData = z.object({
  write_files: z.array(z.object({ path: z.string(), content: z.string().optional() })),
  phone_home: z.object({ url: z.url({ protocol: /^https?$/ }).max(1_000) }).optional(),
});

export interface ReadSeed {
  /** What the installed system is to show; null: nothing is said of that. */
  readonly token: string | null;
  /** Whom the installer calls once it has begun; null: nobody. */
  readonly phoneHome: string | null;
}
const NOTHING_READ: ReadSeed = { token: null, phoneHome: null };

/**
 * What an installer learns from a volume for NoCloud: the token that the installed system is to show, in the file that its cloud-config has
 * written, and whom to call. Nothing from a volume that is none. Only Joliet names are read.
 */
export function readSeed(volume: Buffer): ReadSeed {
  const text = readJolietFile(volume, "user-data");
  if (text === undefined || !text.startsWith("#cloud-config")) return NOTHING_READ;
  const read = userData.safeParse(parse(text));
  if (!read.success) return NOTHING_READ;
  const stamp = read.data.write_files.find(({ path }) => path === STAMP);
  const token = /^token=(\S+)$/m.exec(stamp?.content ?? "")?.[1] ?? null;
  return { token, phoneHome: read.data.phone_home?.url ?? null };
}

/** Where the descriptor with the long names is. */
function findJoliet(volume: Buffer): number | undefined {
  for (let sector = DESCRIPTORS.first; sector <= DESCRIPTORS.last; sector += 1) {
    const at = sector * SECTOR;
    if (at + SECTOR > volume.length || volume.toString("latin1", at + 1, at + 6) !== "CD001") return undefined;
    if (volume[at] === 2) return at;
  }
  return undefined;
}

function readJolietFile(volume: Buffer, wanted: string): string | undefined {
  const joliet = findJoliet(volume);
  if (joliet === undefined) return undefined;
  const root = volume.readUInt32LE(joliet + 158) * SECTOR;
  const end = Math.min(root + volume.readUInt32LE(joliet + 166), volume.length - 33);
  for (let at = root; at < end; ) {
    const length = volume[at] ?? 0;
    if (length === 0) {
      at = (Math.floor(at / SECTOR) + 1) * SECTOR;
      continue;
    }
    const name = Buffer.from(volume.subarray(at + 33, at + 33 + ((volume[at + 32] ?? 0) & ~1)));
    if (name.swap16().toString("utf16le") === wanted) {
      const start = volume.readUInt32LE(at + 2) * SECTOR;
      return volume.toString("utf8", start, start + volume.readUInt32LE(at + 10));
    }
    at += length;
  }
  return undefined;
}
