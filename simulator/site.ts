import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { MachineSpec } from "./devices/machine-spec.ts";
import type { PowerShelfSpec } from "./devices/power-shelf.ts";
import type { SwitchSpec } from "./devices/switch.ts";
import { InvalidInput, parseInput } from "./invalid-input.ts";
import { type HostSpec, hostsOf, maasHosts } from "./maas/host.ts";
import type { SeededValues } from "./seeded-values.ts";
import { BASTION_ADDRESS, name, word } from "./site/fields.ts";
import { OLD_BIOS } from "./site/firmware.ts";
import { DEFAULT_IMAGE_REFS, DEFAULT_PXE_PROFILE, type ImageSpec, imageOf, imageSchema } from "./site/images.ts";
import { MACHINES_PER_RACK, machinesOf, rackMachineFields, unknownMachines } from "./site/machines.ts";
import { hardwareTypeOf, type RackSpec } from "./site/racks.ts";
import { layoutOf, rackShelfFields, shelvesOf } from "./site/shelves.ts";
import { rackSwitchFields, switchesOf } from "./site/switches.ts";

/** Everything that stands in the simulated datacentre. Later kinds of devices become further lists here. */
export interface Site {
  readonly shelves: readonly PowerShelfSpec[];
  readonly machines: readonly MachineSpec[];
  readonly switches: readonly SwitchSpec[];
  readonly racks: readonly RackSpec[];
  readonly images: readonly ImageSpec[];
  /** What the network boot server answers a machine for which nothing else was arranged. */
  readonly pxe: { readonly profile: string; readonly image: ImageSpec };
  readonly clusters: readonly { readonly name: string }[];
  /** Servers that a MAAS of the site manages; without any there is no MAAS. */
  readonly maasHosts: readonly HostSpec[];
}

const MOST_RACKS = 10_000;
/** Those that the built-in plans name. Nodes from the start are in the first. */
const DEFAULT_CLUSTERS = [{ name: "default-cluster" }, { name: "cluster-a" }] as const;

const rackSchema = z.strictObject({
  id: name.optional(),
  ...rackShelfFields,
  ...rackMachineFields,
  ...rackSwitchFields,
});
type RackEntry = z.infer<typeof rackSchema>;

const siteSchema = z.strictObject({
  racks: z.union([z.int().min(1).max(MOST_RACKS), z.array(rackSchema).min(1).max(MOST_RACKS)]),
  images: z.array(imageSchema).min(1).max(100).optional(),
  pxe: z.strictObject({ profile: word, image: word }).optional(),
  clusters: z.array(z.strictObject({ name })).max(16).optional(),
  maas: z.strictObject({ hosts: maasHosts }).optional(),
});

/**
 * @param site `racks=N`, with `,joined=M` for machines of the last M racks that are nodes already and `,profile=P` for what
 * management controllers are like, `,unknown=K` for machines in no inventory and `,spare=1` for a spare machine in each and `,maas=H` for servers of a MAAS; or the path of a YAML or JSON file.
 */
export function loadSite(site: string, seeded: SeededValues): Site {
  if (site.startsWith("racks=")) return buildSite(countedSite(site), seeded, "site");
  let text: string;
  try {
    text = readFileSync(site, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInput("site", `must be racks=N or the path of a readable site file: ${why}`);
  }
  return buildSite(parseSiteText(text, site), seeded, site);
}

const COUNTED =
  /^racks=(\d{1,5})(?:,joined=(\d{1,5}))?(?:,profile=(\w+))?(?:,unknown=(\d{1,2}))?(?:,spare=([01]))?(?:,maas=(\d{1,5}))?$/;

function countedSite(site: string): z.input<typeof siteSchema> {
  const [, racks = "", joined = "0", given, unknown = "0", spare = "0", hosts = "0"] = COUNTED.exec(site) ?? [];
  const [all, nodes] = [Number(racks), Number(joined)];
  if (all < 1 || all > MOST_RACKS || nodes > all)
    throw new InvalidInput(
      "site",
      `"${site}" must be racks=N[,joined=M][,profile=P][,unknown=K][,spare=1][,maas=H], with N from 1 to ${MOST_RACKS} and M not more than N`,
    );
  const profile = parseInput(rackMachineFields.profile, given, "site.profile");
  return {
    racks: Array.from({ length: all }, (_, index) => ({
      ...(profile === undefined ? {} : { profile }),
      ...machinesWith({ unknown: index === 0 ? Number(unknown) : 0, spare: spare === "1" }),
      ...(index < all - nodes ? {} : { cluster: DEFAULT_CLUSTERS[0].name }),
    })),
    ...(hosts === "0" ? {} : { maas: { hosts: Number(hosts) } }),
  };
}

/**
 * As many as in every rack, and below them those that nobody has written down. A spare is the last of a rack: in no cluster, and with a
 * system firmware that is older than that of all others.
 */
function machinesWith({ unknown, spare }: { unknown: number; spare: boolean }): Pick<RackEntry, "machines"> {
  if (unknown === 0 && !spare) return {};
  const known = Array.from({ length: MACHINES_PER_RACK }, (_, index) =>
    spare && index === MACHINES_PER_RACK - 1 ? { cluster: null, bios: OLD_BIOS } : {},
  );
  const unregistered = unknownMachines(Math.min(unknown, 40)).map((entry) => ({
    ...entry,
    profile: "ideal" as const,
  }));
  return { machines: [...known, ...unregistered] };
}

function parseSiteText(text: string, file: string): unknown {
  try {
    return parseYaml(text); // JSON is YAML
  } catch (error) {
    throw new InvalidInput(file, `is neither YAML nor JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function buildSite(description: unknown, seeded: SeededValues, root = "site"): Site {
  const given = parseInput(siteSchema, description, root);
  const racks: readonly RackEntry[] =
    typeof given.racks === "number" ? Array.from({ length: given.racks }, () => ({})) : given.racks;
  const images = (given.images ?? DEFAULT_IMAGE_REFS.map((ref) => ({ ref }))).map(imageOf);
  const [firstImage] = images;
  const pxeImage = given.pxe === undefined ? firstImage : images.find(({ ref }) => ref === given.pxe?.image);
  if (firstImage === undefined || pxeImage === undefined)
    throw new InvalidInput(`${root}.pxe.image`, `is none of the images ${images.map(({ ref }) => ref).join(", ")}`);
  const places = racks.map((rack, index) => ({
    rack,
    place: { rackId: rack.id ?? `rack-${index + 1}`, rackNumber: index + 1 },
  }));
  const devices = places.map(({ rack, place }) => ({
    shelves: shelvesOf(rack, place, seeded),
    machines: machinesOf(rack, place, { seeded, defaultImage: firstImage.ref }),
    switches: switchesOf(rack, place, seeded),
  }));
  const site: Site = {
    shelves: devices.flatMap(({ shelves }) => shelves),
    machines: devices.flatMap(({ machines }) => machines),
    switches: devices.flatMap(({ switches }) => switches),
    racks: places.map(({ rack, place }, index) => rackOf(place.rackId, layoutOf(rack, place), devices[index])),
    images,
    pxe: { profile: given.pxe?.profile ?? DEFAULT_PXE_PROFILE, image: pxeImage },
    clusters: given.clusters ?? DEFAULT_CLUSTERS,
    maasHosts: hostsOf(given.maas?.hosts, seeded),
  };
  checkSite(site, root);
  return site;
}

function rackOf(
  id: string,
  layout: RackSpec["layout"],
  devices: Pick<Site, "machines" | "switches" | "shelves"> | undefined,
): RackSpec {
  const { machines = [], switches = [], shelves = [] } = devices ?? {};
  const compute = machines.filter(({ isUnknown }) => !isUnknown).length;
  const counts = { compute, switches: switches.length, powerShelves: shelves.length };
  return { id, layout, hardwareType: hardwareTypeOf(layout), counts };
}

function checkSite({ shelves, machines, switches, images, clusters, maasHosts: hosts }: Site, root: string): void {
  const kinds = [
    ["shelf", shelves],
    ["machine", machines],
    ["switch", switches],
  ] as const;
  for (const key of ["id", "mac", "serial"] as const) {
    for (const [kind, devices] of kinds)
      requireUnique(
        root,
        key,
        devices.map((device) => [device[key], `the ${kind} ${device.id}`]),
      );
  }
  const devices = [...shelves, ...machines, ...switches];
  requireUnique(root, "id", [
    ...devices.map(({ id }) => [id, `the device ${id}`] as const),
    ...clusters.map((cluster) => [cluster.name, `the cluster ${cluster.name}`] as const),
    ...hosts.map(({ id }) => [id, `the server ${id} of MAAS`] as const),
  ]);
  requireUnique(
    root,
    "ipmi_address",
    hosts.map(({ id, ipmiAddress }) => [ipmiAddress, id]),
  );
  requireUnique(
    root,
    "mac",
    hosts.map(({ id, mac }) => [mac, id]),
  );
  requireUnique(root, "address", [
    [BASTION_ADDRESS, "the bastion"],
    ...devices.map(({ id, address }) => [address, id] as const),
    ...machines.map(({ id, sshAddress }) => [sshAddress, `the SSH server of ${id}`] as const),
    ...switches.map(({ id, nvos }) => [nvos.address, `the operating system of ${id}`] as const),
  ]);
  for (const { id, initialImage, initialCluster } of machines) {
    if (initialImage !== null && !images.some(({ ref }) => ref === initialImage))
      throw new InvalidInput(root, `the machine ${id} has the image "${initialImage}", which the site does not have`);
    if (initialCluster !== null && !clusters.some((cluster) => cluster.name === initialCluster))
      throw new InvalidInput(
        root,
        `the machine ${id} is in the cluster "${initialCluster}", which the site does not have`,
      );
  }
}

/** @param owned values, each with what it belongs to */
function requireUnique(root: string, what: string, owned: readonly (readonly [string, string])[]): void {
  const owners = new Map<string, string>();
  for (const [value, owner] of owned) {
    const other = owners.get(value);
    if (other !== undefined)
      throw new InvalidInput(root, `the ${what} "${value}" belongs to two, ${other} and ${owner}; it must be unique`);
    owners.set(value, owner);
  }
}
