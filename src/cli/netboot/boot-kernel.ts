const SIGNATURE_AT = 0x202;
const VERSION_AT = 0x20e;
const SETUP_START = 0x200;

/** The release of an x86 kernel image (`6.1.0-50-amd64`), from its own header; undefined for images of other kinds. */
export function kernelRelease(image: Buffer): string | undefined {
  if (image.length < SETUP_START * 2 || image.toString("latin1", SIGNATURE_AT, SIGNATURE_AT + 4) !== "HdrS")
    return undefined;
  const at = SETUP_START + image.readUInt16LE(VERSION_AT);
  const end = image.indexOf(0, at);
  if (at === SETUP_START || end < 0 || end - at > 256) return undefined;
  return image.toString("latin1", at, end).split(" ")[0];
}

const ELF = Buffer.from([0x7f, 0x45, 0x4c, 0x46]);
const PT_INTERP = 3;

/** Whether a program runs without any library: nothing else is there when it is to run. Undefined: it is no 64-bit program. */
export function isStatic(program: Buffer): boolean | undefined {
  if (!program.subarray(0, 4).equals(ELF) || program[4] !== 2 || program[5] !== 1) return undefined;
  const table = Number(program.readBigUInt64LE(0x20));
  const [size, count] = [program.readUInt16LE(0x36), program.readUInt16LE(0x38)];
  for (let index = 0; index < count; index += 1)
    if (program.readUInt32LE(table + index * size) === PT_INTERP) return false;
  return true;
}

/** Those of these programs that a busybox does not have: it carries their names, each ended by a NUL, one after the other. */
export const missingApplets = (busybox: Buffer, applets: readonly string[]): readonly string[] =>
  applets.filter((name) => !busybox.includes(`\0${name}\0`, 0, "latin1"));
