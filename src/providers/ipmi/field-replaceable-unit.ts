import { oneLine } from "../transport/one-line.ts";

/** Who made the machine, and its serial, from what `ipmitool fru print 0` writes; null where it does not say. */
export interface FruIdentity {
  readonly serial: string | null;
  readonly vendor: string | null;
  readonly model: string | null;
}

/** More than any such text; what a BMC makes of it beyond is cut. */
const LONGEST = 256;

/**
 * The product's own fields come first. The serial may also be the chassis', which is the same box; the board's is that of a part
 * that gets replaced, and would make another machine of it.
 */
export function fruIdentityOf(text: string): FruIdentity {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const at = line.indexOf(":");
    if (at < 0) continue;
    const name = line.slice(0, at).trim();
    const value = oneLine(line.slice(at + 1), LONGEST);
    if (value !== "" && !fields.has(name)) fields.set(name, value);
  }
  const first = (...names: readonly string[]) => names.map((name) => fields.get(name)).find((value) => value) ?? null;
  return {
    serial: first("Product Serial", "Chassis Serial"),
    vendor: first("Product Manufacturer", "Board Mfg"),
    model: first("Product Name", "Board Product"),
  };
}
