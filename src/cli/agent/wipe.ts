import { constants, readFileSync, realpathSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";

const CHUNK = 4 * 1024 * 1024;
const SECTOR = 512;
/** Read back evenly over the whole device, the first and the last block among them. */
const SAMPLES = 64;
const SAMPLE = 64 * 1024;

/** Overwrites all of the device with zeros, and reads back that it holds them. Nobody else may use it meanwhile. */
export async function wipeDevice(path: string, signal: AbortSignal): Promise<void> {
  refuseMounted(path);
  // The kernel refuses a block device that is mounted, or part of an array, to whoever wants it alone.
  const device = await open(path, constants.O_RDWR | constants.O_EXCL);
  try {
    const size = await sizeOf(device, path);
    const zeros = Buffer.alloc(CHUNK);
    for (let at = 0; at < size; at += CHUNK) {
      signal.throwIfAborted();
      await writeWhole(device, zeros.subarray(0, Math.min(CHUNK, size - at)), at);
    }
    await device.sync();
    if (!(await isBlank(device, size))) throw new Error(`${path} does not hold the zeros that were written to it`);
  } finally {
    await device.close();
  }
}

/** Whether nothing but zeros is found on the device. */
export async function isDeviceBlank(path: string): Promise<boolean> {
  const device = await open(path, constants.O_RDONLY);
  try {
    return await isBlank(device, await sizeOf(device, path));
  } finally {
    await device.close();
  }
}

async function writeWhole(device: FileHandle, data: Buffer, at: number): Promise<void> {
  for (let written = 0; written < data.length; ) {
    const { bytesWritten } = await device.write(data, written, data.length - written, at + written);
    written += bytesWritten;
  }
}

async function isBlank(device: FileHandle, size: number): Promise<boolean> {
  const last = Math.max(0, size - SAMPLE);
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const at = Math.floor((last * sample) / (SAMPLES - 1));
    const { buffer, bytesRead } = await device.read(Buffer.alloc(SAMPLE), 0, SAMPLE, at);
    if (buffer.subarray(0, bytesRead).some((byte) => byte !== 0)) return false;
  }
  return true;
}

async function sizeOf(device: FileHandle, path: string): Promise<number> {
  const stat = await device.stat();
  if (stat.isFile()) return stat.size;
  if (!stat.isBlockDevice()) throw new Error(`${path} is neither a block device nor a file`);
  return Number(readFileSync(`/sys/class/block/${basename(realpathSync(path))}/size`, "utf8")) * SECTOR;
}

function refuseMounted(path: string): void {
  const real = realpathSync(path);
  for (const table of ["/proc/self/mounts", "/proc/swaps"]) {
    const used = usedBy(real, readFileSync(table, "utf8"));
    if (used !== undefined) throw new Error(`${path} is in use (${used} is in ${table})`);
  }
}

/** What of the device is in a table of mounts or swaps: all of it, or one of its partitions. */
export function usedBy(device: string, table: string): string | undefined {
  return table
    .split("\n")
    .map((line) => line.split(/\s/, 1)[0] ?? "")
    .find((source) => source === device || (source.startsWith(device) && /^p?\d+$/.test(source.slice(device.length))));
}
