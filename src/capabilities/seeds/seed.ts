/** What installers read to learn what to install. Each is what its distribution documents. */
export const SEED_FORMATS = ["nocloud", "autoinstall", "kickstart", "ignition"] as const;
export type SeedFormat = (typeof SEED_FORMATS)[number];

/** Where the installer of an ISO looks: on a second medium, in the root of its own, or on whichever of them has it. */
export const SEED_PLACES = ["medium", "image", "either"] as const;
export type SeedPlace = (typeof SEED_PLACES)[number];

interface FormatSpec {
  /** The label of the second medium on which installers look for it; null: they look on none. */
  readonly label: string | null;
  /** The file that an installer reads first: who has read it has begun. */
  readonly main: string;
  readonly doc: string;
}

export const SEED_SPECS = {
  nocloud: { label: "CIDATA", main: "user-data", doc: "cloud-init's NoCloud: user-data and meta-data" },
  autoinstall: { label: "CIDATA", main: "user-data", doc: "Ubuntu's autoinstall, within NoCloud" },
  kickstart: { label: "OEMDRV", main: "ks.cfg", doc: "Anaconda's ks.cfg" },
  ignition: { label: null, main: "config.ign", doc: "Ignition's config.ign, over the network or on its own medium" },
} as const satisfies Record<SeedFormat, FormatSpec>;

export const readsFromMedia = (format: SeedFormat): boolean => SEED_SPECS[format].label !== null;

/** Why a document cannot be given to an installer of this format; undefined when it can. */
export function whyDocumentUnfit(format: SeedFormat, document: string): string | undefined {
  const isCloudConfig = document.startsWith("#cloud-config");
  const isJson = document.trimStart().startsWith("{");
  switch (format) {
    case "nocloud":
    case "autoinstall":
      return isCloudConfig ? undefined : `is not cloud-config, which an image with seed ${format} reads`;
    case "ignition":
      return isJson ? undefined : "is not the JSON that an image with seed ignition reads";
    case "kickstart":
      return isCloudConfig || isJson ? "is not a kickstart file, which an image with seed kickstart reads" : undefined;
  }
}

/** As whom the run signs in to the installed system. */
export type SignIn = { readonly username: string; readonly publicKey: string };

/** What one installation is told. */
export interface SeedInput {
  readonly format: SeedFormat;
  readonly machineId: string;
  /** Another one for each installation: cloud-init goes by it. */
  readonly instanceId: string;
  /** What the installed system shows of itself. */
  readonly stamp: { readonly path: string; readonly text: string };
  /** Who signs in to the installed system; null: nobody does. */
  readonly signIn: SignIn | null;
  /** The installer reads its own medium, and not one with a label. */
  readonly isInImage?: boolean;
  /** What the plan's cloud_init_ref names; null for none. */
  readonly document: string | null;
  /** Where an installer says that it has begun; null: nowhere. */
  readonly phoneHome: string | null;
}

export interface SeedFile {
  readonly name: string;
  readonly content: Buffer;
}

/** Writes what installers read. */
export interface SeedWriter {
  /** Null for a key that cannot be read: it signs in nowhere, and the step that proves the installation says so. */
  signInOf(credentials: { readonly username: string; readonly privateKey: string }): SignIn | null;
  filesOf(input: SeedInput): readonly SeedFile[];
  /** The files as one medium, the same bytes whenever it is written; undefined for a format that installers do not look for on media. */
  mediumOf(input: SeedInput, at: Date): Buffer | undefined;
  /** Why a document can be given to no installer; undefined when it can. */
  whyUnreadable(document: string): string | undefined;
}
