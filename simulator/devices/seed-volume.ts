import { parse } from "yaml";
import { z } from "zod";

const SECTOR = 2_048;
const JOLIET = 17 * SECTOR;
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

function readJolietFile(volume: Buffer, wanted: string): string | undefined {
  if (volume.length < JOLIET + SECTOR || volume.toString("latin1", JOLIET + 1, JOLIET + 6) !== "CD001")
    return undefined;
  const root = volume.readUInt32LE(JOLIET + 158) * SECTOR;
  for (let at = root; at < Math.min(root + SECTOR, volume.length - 33); at += volume[at] ?? 0) {
    const length = volume[at] ?? 0;
    if (length === 0) return undefined;
    const name = Buffer.from(volume.subarray(at + 33, at + 33 + ((volume[at + 32] ?? 0) & ~1)));
    if (name.swap16().toString("utf16le") !== wanted) continue;
    const start = volume.readUInt32LE(at + 2) * SECTOR;
    return volume.toString("utf8", start, start + volume.readUInt32LE(at + 10));
  }
  return undefined;
}
