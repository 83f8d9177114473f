import type { Thing } from "../../kernel/lifecycle.ts";

/** The kinds of devices of a rack that have firmware of their own. */
export const FIRMWARE_DEVICES = ["compute", "switch", "power_shelf"] as const;
export type FirmwareDevice = (typeof FIRMWARE_DEVICES)[number];

/** What makes new firmware run, once it is written. none: the device does that by itself. */
export const ACTIVATIONS = ["none", "bmc_reset", "host_reset", "power_cycle"] as const;
export type Activation = (typeof ACTIVATIONS)[number];

/** Racks of a site are for development or for production; each may have firmware of its own. */
export const FIRMWARE_CLASSES = ["dev", "prod"] as const;
export type FirmwareClass = (typeof FIRMWARE_CLASSES)[number];

/** The hardware type of a record that suits every rack. */
export const ANY_HARDWARE = "any";

/** One file of a record: what it is written to, and what the device shows once it runs. A type and no interface, so that it is JSON to the compiler. */
export type FirmwareComponent = {
  readonly device: FirmwareDevice;
  /** Such as `bmc`, `bios` or `psu`: the words of the component enums in `forge.Forge`, in lower case. */
  readonly component: string;
  readonly class: FirmwareClass;
  readonly version: string;
  /** Of the file: `sha256:` and 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Of the file; 0 until it is here whole. */
  readonly bytes: number;
  /** Parts of the device that it is written to, as its BMC names them. Empty: the BMC finds them out by the file. */
  readonly targets: readonly string[];
  readonly activation: Activation;
  /** A component with a lower number is written first. */
  readonly order: number;
};

/** A record of the catalogue, as far as racks need it. */
export interface RackFirmware {
  readonly id: string;
  /** Of the racks that it is for; `any` suits all. */
  readonly hardwareType: string;
  /** All of its files are here, and are what their digests say. */
  readonly available: boolean;
  /** What racks of the type get where nobody names a version. At most one a type. */
  readonly isDefault: boolean;
  readonly components: readonly FirmwareComponent[];
  /** Why the record cannot be read; it then has no components, and is not available. Absent: it can. */
  readonly unreadable?: string;
}

/** Why nothing is written from a record; undefined where it may be. */
export function whyUnavailable({ id, available, unreadable }: RackFirmware): string | undefined {
  if (unreadable !== undefined)
    return `the record of firmware ${id} cannot be read (${unreadable}): delete it (millwright rack-firmware delete ${id}) and create it again`;
  return available ? undefined : `firmware ${id} is not available`;
}

/** Where a file of a record comes from. */
export interface FirmwareFile {
  readonly digest: string;
  readonly name: string;
  readonly url: string;
  /** Null where the record does not say. */
  readonly bytes: number | null;
  /** How the server there wants the token of the record. */
  readonly sign: FileSign;
}

/** bearer: `Authorization`. artifactory: `X-JFrog-Art-Api`, which Artifactory wants of API keys. */
export const FILE_SIGNS = ["bearer", "artifactory"] as const;
export type FileSign = (typeof FILE_SIGNS)[number];

/** A record of the catalogue, with what keeps it: its files are downloaded, checked, and kept by their digests. */
export interface CataloguedFirmware extends Thing, RackFirmware {
  /** As it was given, word for word. */
  readonly config: string;
  readonly files: readonly FirmwareFile[];
  readonly facts: {
    /** The size of each file that is here whole, by its digest. */
    readonly sizes: Readonly<Record<string, number>>;
  };
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Whether a record may be written to a rack of this hardware type. */
export const suitsHardware = ({ hardwareType }: Pick<RackFirmware, "hardwareType">, type: string | null): boolean =>
  hardwareType === ANY_HARDWARE || hardwareType === type;

/** What a record has for one kind of device, in the order in which it is written. Empty names take all components. */
export function componentsFor(
  { components }: Pick<RackFirmware, "components">,
  device: FirmwareDevice,
  wanted: FirmwareClass,
  names: readonly string[] = [],
): readonly FirmwareComponent[] {
  return components
    .filter((each) => each.device === device && each.class === wanted)
    .filter(({ component }) => names.length === 0 || names.includes(component))
    .sort((a, b) => a.order - b.order);
}
