/** The inventory of a field-replaceable unit, as the IPMI FRU specification lays it out: a chassis, a board and a product. */
export function fruBytes({ serial, vendor, model }: { serial: string; vendor: string; model: string }): number[] {
  const chassis = area([0x17, ...text("PART-1"), ...text("CHASSIS-1"), END]);
  const board = area([25, 0, 0, 0, ...[vendor, "Board", "BOARD-1", "PART-2", ""].flatMap(text), END]);
  const product = area([25, ...[vendor, model, "PART-3", "1.0", serial, "", ""].flatMap(text), END]);
  const eighths = (bytes: readonly number[]) => bytes.length / 8;
  const first = 1;
  const header = [1, 0, first, first + eighths(chassis), first + eighths(chassis) + eighths(board), 0, 0];
  return [...withChecksum(header), ...chassis, ...board, ...product];
}

const END = 0xc1;
/** 8-bit text, its length in the lower six bits. */
const text = (value: string): number[] => [0xc0 | value.length, ...Buffer.from(value, "latin1")];

/** Version, length in units of eight, the fields, and padding before the checksum. */
function area(fields: readonly number[]): number[] {
  const body = [1, 0, ...fields];
  while ((body.length + 1) % 8 !== 0) body.push(0);
  body[1] = (body.length + 1) / 8;
  return withChecksum(body);
}

const withChecksum = (bytes: readonly number[]): number[] => [
  ...bytes,
  (256 - (bytes.reduce((sum, byte) => sum + byte, 0) % 256)) % 256,
];
