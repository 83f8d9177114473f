import { z } from "zod";
import { wrongField } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import {
  ACTIVATIONS,
  type Activation,
  type FirmwareClass,
  type FirmwareDevice,
} from "../../lifecycles/rack-firmware/rack-firmware.ts";
import type { KeptComponent } from "../../store/rack-firmware/rack-firmware.ts";

/** What a firmware document says, as far as it is used. */
export interface FirmwareConfig {
  readonly id: string;
  readonly components: readonly KeptComponent[];
}

const FIELD = "config_json";
const LONGEST_CONFIG = 4 * 1_024 * 1_024;
const MOST_COMPONENTS = 256;

const text = z.string().min(1).max(512).refine(isPrintable, "must be printable");
const locationSchema = z.object({
  Location: z.string().min(1).max(2_048),
  LocationType: z.string().optional(),
  FileName: text.optional(),
  Type: z.string().default("Firmware"),
  Sha256: z
    .string()
    .regex(/^[0-9A-Fa-f]{64}$/, "must be 64 hexadecimal digits")
    .optional(),
  Size: z.number().int().positive().max(Number.MAX_SAFE_INTEGER).optional(),
});
const firmwareSchema = z.object({
  Component: text,
  Version: text.optional(),
  Type: z.string().optional(),
  Target: text.optional(),
  Targets: z.array(text).max(64).optional(),
  Activation: z.enum(ACTIVATIONS).optional(),
  Locations: z.array(locationSchema).max(64).default([]),
});
const boardSchema = z.object({
  Type: z.string().optional(),
  Name: z.string().optional(),
  Components: z.object({ Firmware: z.array(firmwareSchema).max(MOST_COMPONENTS).default([]) }),
});
const configSchema = z.object({
  Id: text.max(256),
  BoardSKUs: z.array(boardSchema).min(1).max(64),
});
type Firmware = z.output<typeof firmwareSchema>;

/** The boards that have firmware of their own; documents of other products name theirs after the product. */
export function deviceOfBoard(type: string): FirmwareDevice | undefined {
  if (/compute node$/i.test(type)) return "compute";
  if (/switch( tray)?$/i.test(type)) return "switch";
  return /power ?shelf$/i.test(type) ? "power_shelf" : undefined;
}

/** What is written first: a component that is not listed comes after those that are, in the order of the document. */
const ORDER: Readonly<Record<FirmwareDevice, readonly string[]>> = {
  compute: ["hgx_bmc", "bmc"],
  switch: ["bmc", "fpga", "erot", "bios", "cpld", "nvos"],
  power_shelf: ["pmc", "psu"],
};

/** What makes it run, where the document does not say. */
const ACTIVATED_BY: Readonly<Record<string, Activation>> = {
  bmc: "bmc_reset",
  pmc: "bmc_reset",
  bios: "host_reset",
  cpld: "power_cycle",
  cpld_mb: "power_cycle",
  cpld_pdb: "power_cycle",
};

/** Packages are named after all they hold, such as `BMC+FPGA+EROT`: the first is what they are known by. */
function componentOf(name: string): string {
  const [first = name] = name.split("+");
  const word = first
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return word === "sbios" || word === "uefi" ? "bios" : word;
}

/**
 * Reads a document of firmware: `BoardSKUs[].Components.Firmware[].Locations[]`, of which those of type `Firmware` count. Every file
 * needs its digest, since nobody could say otherwise whether what came is what was meant.
 */
export function parseFirmwareConfig(json: string): FirmwareConfig {
  if (json.length > LONGEST_CONFIG) throw wrongField(FIELD, `must have at most ${LONGEST_CONFIG} characters`);
  const result = configSchema.safeParse(parseJson(json));
  if (!result.success) {
    const [issue] = result.error.issues;
    throw wrongField(FIELD, `${issue?.path.join(".") || "the document"}: ${issue?.message ?? "cannot be read"}`);
  }
  const { Id: id, BoardSKUs } = result.data;
  if (!isPrintable(id) || id.trim() !== id)
    throw wrongField(FIELD, "Id: must be printable and not begin or end with a space");
  const components = BoardSKUs.flatMap((board, at) => {
    const device = deviceOfBoard(board.Type ?? "");
    return device === undefined
      ? []
      : board.Components.Firmware.flatMap((each) => componentFrom(each, device, `BoardSKUs.${at}`));
  });
  if (components.length === 0)
    throw wrongField(FIELD, "no firmware of a Compute Node, Switch Tray or Power Shelf is in it");
  if (components.length > MOST_COMPONENTS) throw wrongField(FIELD, `at most ${MOST_COMPONENTS} components`);
  refuseTwins(components);
  return { id, components: components.map((component, at) => ({ ...component, order: orderOf(component, at) })) };
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw wrongField(FIELD, "is not JSON");
  }
}

function componentFrom(firmware: Firmware, device: FirmwareDevice, at: string): Omit<KeptComponent, "order">[] {
  const where = `${at} ${firmware.Component}`;
  const location = firmware.Locations.find(({ Type }) => Type === "Firmware");
  if (!location) return [];
  const component = componentOf(firmware.Component);
  if (component === "") throw wrongField(FIELD, `${where}: Component must have a letter or a digit`);
  if (firmware.Version === undefined)
    throw wrongField(FIELD, `${where}: Version is missing; the installed version is compared with it`);
  if (location.Sha256 === undefined)
    throw wrongField(FIELD, `${where}: Sha256 is missing; the file is compared with it`);
  const url = parseUrl(location.Location, where);
  const isArtifactory = /^(artifactory|jfrog)$/i.test(location.LocationType ?? "");
  return [
    {
      device,
      component,
      class: classOf(firmware.Type, where),
      version: firmware.Version,
      digest: `sha256:${location.Sha256.toLowerCase()}`,
      targets: firmware.Targets ?? (firmware.Target === undefined ? [] : [firmware.Target]),
      activation: firmware.Activation ?? ACTIVATED_BY[component] ?? "none",
      file: {
        name: fileName(location.FileName ?? url.pathname),
        url: url.href,
        bytes: location.Size ?? null,
        sign: isArtifactory ? "artifactory" : "bearer",
      },
    },
  ];
}

function classOf(type: string | undefined, where: string): FirmwareClass {
  const word = (type ?? "prod").toLowerCase();
  if (word === "prod" || word === "dev") return word;
  throw wrongField(FIELD, `${where}: Type must be Prod or Dev, got ${JSON.stringify((type ?? "").slice(0, 40))}`);
}

function parseUrl(location: string, where: string): URL {
  const url = URL.canParse(location) ? new URL(location) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw wrongField(FIELD, `${where}: Location must be an http or https URL`);
  // It would be shown to everybody who may read the record.
  if (url.username !== "" || url.password !== "")
    throw wrongField(FIELD, `${where}: Location must not have a user or password; give the token apart`);
  return url;
}

/** A part of an address, which some BMCs go by. */
function fileName(path: string): string {
  const name = (path.split("/").at(-1) ?? "").replace(/[^A-Za-z0-9._-]/g, "_").slice(-128);
  return /[A-Za-z0-9]/.test(name) ? name : "firmware.bin";
}

const keyOf = ({ device, component, class: wanted }: Omit<KeptComponent, "order">): string =>
  `${component} of ${device}, class ${wanted}`;

function refuseTwins(components: readonly Omit<KeptComponent, "order">[]): void {
  const seen = new Set<string>();
  for (const component of components) {
    const key = keyOf(component);
    if (seen.has(key)) throw wrongField(FIELD, `${key} is in it twice`);
    seen.add(key);
  }
  const names = Map.groupBy(components, ({ digest }) => digest);
  for (const [digest, same] of names)
    if (new Set(same.map(({ file }) => file.bytes)).size > 1) throw wrongField(FIELD, `${digest} has two sizes in it`);
}

function orderOf({ device, component }: Omit<KeptComponent, "order">, at: number): number {
  const rank = ORDER[device].indexOf(component);
  return (rank === -1 ? ORDER[device].length : rank) * MOST_COMPONENTS + at;
}
