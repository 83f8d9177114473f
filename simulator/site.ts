import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { type PowerShelfSpec, SHELF_LAYOUTS, type ShelfLayout } from "./devices/power-shelf.ts";
import { InvalidInput, parseInput } from "./invalid-input.ts";
import type { SeededValues } from "./seeded-values.ts";

/** Everything that stands in the simulated datacentre. Later kinds of devices become further lists here. */
export interface Site {
  readonly shelves: readonly PowerShelfSpec[];
}

const SHELVES_PER_RACK = 8;
const SUPPLIES_PER_SHELF = 6;
const MOST_RACKS = 10_000;
const MOST_SHELVES = 64;

const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    "must be 1 to 63 letters, digits, '.', '_' or '-', starting with a letter or digit",
  );
const word = z.string().min(1).max(128);

const shelfSchema = z.strictObject({
  id: name.optional(),
  address: z
    .string()
    .regex(/^127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/, "must be a loopback address, 127.x.y.z")
    .optional(),
  mac: z
    .string()
    .regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, "must be six lower-case hexadecimal pairs joined by ':'")
    .optional(),
  serial: word.optional(),
  layout: z.enum(SHELF_LAYOUTS).optional(),
  vendor: word.optional(),
  model: word.optional(),
  firmware: word.optional(),
  username: word.regex(/^[^:]+$/, "must not contain ':'").optional(),
  password: word.optional(),
  power: z.enum(["on", "off"]).optional(),
  capacity_watts: z.number().positive().max(1_000_000).optional(),
  lockout_failures: z.int().min(1).max(1_000_000).optional(),
  lockout_seconds: z.number().positive().max(86_400).optional(),
});
type ShelfEntry = z.infer<typeof shelfSchema>;

const rackSchema = z.strictObject({
  id: name.optional(),
  layout: z.enum(SHELF_LAYOUTS).optional(),
  shelves: z.union([z.int().min(0).max(MOST_SHELVES), z.array(shelfSchema).max(MOST_SHELVES)]).optional(),
});
type RackEntry = z.infer<typeof rackSchema>;

const siteSchema = z.strictObject({
  racks: z.union([z.int().min(1).max(MOST_RACKS), z.array(rackSchema).min(1).max(MOST_RACKS)]),
});

const VENDOR: Readonly<Record<ShelfLayout, { vendor: string; model: string; firmware: string; serialPrefix: string }>> =
  {
    liteon: { vendor: "LITE-ON", model: "PF-1333-7R", firmware: "r1.3.9", serialPrefix: "LT" },
    standard: { vendor: "Generic", model: "PS-33K", firmware: "2.4.1", serialPrefix: "GN" },
  };

/** @param site `racks=N`, or the path of a YAML or JSON file. */
export function loadSite(site: string, seeded: SeededValues): Site {
  const count = /^racks=(.*)$/s.exec(site)?.[1];
  if (count !== undefined) {
    if (!/^\d{1,5}$/.test(count))
      throw new InvalidInput("site", `"${site}" must be racks=N, with N from 1 to ${MOST_RACKS}`);
    return buildSite({ racks: Number(count) }, seeded, "site");
  }
  let text: string;
  try {
    text = readFileSync(site, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInput("site", `must be racks=N or the path of a readable site file: ${why}`);
  }
  return buildSite(parseSiteText(text, site), seeded, site);
}

function parseSiteText(text: string, file: string): unknown {
  try {
    return parseYaml(text); // JSON is YAML
  } catch (error) {
    throw new InvalidInput(file, `is neither YAML nor JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function buildSite(description: unknown, seeded: SeededValues, root = "site"): Site {
  const { racks } = parseInput(siteSchema, description, root);
  const entries: readonly RackEntry[] = typeof racks === "number" ? Array.from({ length: racks }, () => ({})) : racks;
  const shelves = entries.flatMap((rack, index) => shelvesOf(rack, index + 1, seeded));
  for (const key of ["id", "address", "mac", "serial"] as const) requireUnique(shelves, key, root);
  return { shelves };
}

function shelvesOf(rack: RackEntry, rackNumber: number, seeded: SeededValues): PowerShelfSpec[] {
  const rackId = rack.id ?? `rack-${rackNumber}`;
  // Racks alternate between the layouts, so that the smallest datacentre already shows both.
  const layout = rack.layout ?? (rackNumber % 2 === 1 ? "liteon" : "standard");
  const shelves = rack.shelves ?? SHELVES_PER_RACK;
  const entries: readonly ShelfEntry[] =
    typeof shelves === "number" ? Array.from({ length: shelves }, () => ({})) : shelves;
  return entries.map((entry, index) => shelfOf({ layout, ...entry }, { rackId, rackNumber, slot: index + 1 }, seeded));
}

function shelfOf(
  entry: ShelfEntry & { layout?: ShelfLayout | undefined },
  place: { rackId: string; rackNumber: number; slot: number },
  seeded: SeededValues,
): PowerShelfSpec {
  const { rackId, rackNumber, slot } = place;
  const id = entry.id ?? `${rackId}-shelf-${slot}`;
  const layout = entry.layout ?? "liteon";
  const vendor = VENDOR[layout];
  const where = `${String(rackNumber).padStart(4, "0")}${String(slot).padStart(2, "0")}`;
  return {
    kind: "power_shelf",
    id,
    rack: rackId,
    slot,
    address: entry.address ?? `127.${64 + (rackNumber >> 8)}.${rackNumber & 255}.${slot}`,
    mac: entry.mac ?? macOf(id, rackNumber, slot, seeded),
    serial: entry.serial ?? `${vendor.serialPrefix}${seeded.label(`${id}/serial`, 6)}${where}`,
    layout,
    vendor: entry.vendor ?? vendor.vendor,
    model: entry.model ?? vendor.model,
    bmcFirmware: entry.firmware ?? vendor.firmware,
    username: entry.username ?? "root",
    password: entry.password ?? seeded.label(`${id}/password`, 16),
    supplies: Array.from({ length: SUPPLIES_PER_SHELF }, (_, index) => ({
      name: `ps${index}`,
      serial: `${vendor.serialPrefix}P${seeded.label(`${id}/supply-${index}`, 8)}${index}`,
      firmware: "0204",
    })),
    capacityWatts: entry.capacity_watts ?? 33_000,
    initialPower: entry.power ?? "on",
    lockout: { failures: entry.lockout_failures ?? 10, seconds: entry.lockout_seconds ?? 60 },
  };
}

/** Locally administered; the place makes it unique, the seed makes sites differ. */
function macOf(id: string, rackNumber: number, slot: number, seeded: SeededValues): string {
  const digits = `02${seeded.hex(`${id}/mac`, 4)}${rackNumber.toString(16).padStart(4, "0")}${slot.toString(16).padStart(2, "0")}`;
  return (digits.match(/../g) ?? []).join(":");
}

function requireUnique(
  shelves: readonly PowerShelfSpec[],
  key: "id" | "address" | "mac" | "serial",
  root: string,
): void {
  const owners = new Map<string, string>();
  for (const shelf of shelves) {
    const other = owners.get(shelf[key]);
    if (other !== undefined) {
      throw new InvalidInput(
        root,
        `the ${key} "${shelf[key]}" belongs to two shelves, ${other} and ${shelf.id}; it must be unique`,
      );
    }
    owners.set(shelf[key], shelf.id);
  }
}
