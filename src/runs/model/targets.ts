import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import type { Capability } from "../../capabilities/provider.ts";
import type { SeedFormat, SeedPlace, SignIn } from "../../capabilities/seeds/seed.ts";
import type { IsoSeen } from "../../capabilities/seeds/seeded-media.ts";
import type { SshCredentials, SshTarget } from "../../capabilities/ssh-target.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { bmcPortOf, bmcProtocolOf } from "../../lifecycles/machine/endpoint.ts";
import { type Machine, ownClusterOf, sshAddressOf } from "../../lifecycles/machine/machine.ts";
import { pinnedKeyOf } from "../../lifecycles/machine/sighting.ts";
import type { Runbook } from "../steps/scripts/runbooks.ts";

/** What a payload can name that the server must have. An empty `ref` of a cluster means the machine's own. */
export interface Reference {
  readonly kind: "cluster" | "image" | "script" | "workflow" | "cloud_init";
  readonly ref: string;
}

/** An operating system that can be installed. */
export interface Image {
  /** As plans name it. */
  readonly ref: string;
  /** `sha256:…`: what the installed system must show. */
  readonly digest: string;
  /** Where the installation medium lies; of a `netboot` image: the workflow that installs it. */
  readonly location: string;
  /**
   * iso: installs by itself once it is booted, which is meant where nothing is said. disk: written as it is. netboot: installed
   * over the server's own boot path.
   */
  readonly kind?: "iso" | "disk" | "netboot";
  /** Absent: ssh. token: that its installer reports with what only this boot was given. */
  readonly proof?: "token" | "ssh";
  /** What its installer reads to learn what to install. Absent: nothing but the address of its medium. */
  readonly seed?: SeedFormat;
  /** Where the installer of an ISO looks for it. Absent: on a second medium. */
  readonly seedOn?: SeedPlace;
}

/** An image that this server serves with the seed of one installation in it, and what must not change while it does. */
export type SeededImage = {
  /** Where the BMC fetches it. */
  readonly url: string;
  readonly iso: IsoSeen;
  /** Who signs in to the installed system; null: nobody does. */
  readonly signIn: SignIn | null;
  /** The server, as the machine itself reaches it. Absent: as its BMC does. */
  readonly reportsTo?: string;
};

/** What a machine's provider must be able to do for an image to be installed, by its kind. */
export const IMAGE_NEEDS = { iso: "imaging", disk: "imaging", netboot: "netInstall" } as const satisfies Record<
  NonNullable<Image["kind"]>,
  Capability
>;

/** An installation that its own installer proves needs no way into the installed system. */
export const provesWithoutSsh = ({ kind, proof }: Pick<Image, "kind" | "proof">): boolean =>
  kind === "netboot" && proof === "token";

export const ENDPOINTS = ["bmc", "ssh"] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** At which of a machine's endpoints each is had; null: at none of them. */
export const REACHED_AT = {
  power: "bmc",
  inventory: "bmc",
  sensors: "bmc",
  system: "bmc",
  reset: "bmc",
  boot: "bmc",
  imaging: "bmc",
  netInstall: "bmc",
  locator: "bmc",
  vitals: "bmc",
  firmware: "bmc",
  tasks: "bmc",
  manager: "bmc",
  events: "bmc",
  exec: "ssh",
  playbooks: "ssh",
  cluster: null,
  clusterAccess: null,
  nodes: null,
  fabric: null,
} as const satisfies Record<Capability, Endpoint | null>;

export const ENDPOINT_NAMES: Readonly<Record<Endpoint, string>> = { bmc: "BMC", ssh: "SSH" };

export const hasNoEndpoint = (machine: Pick<Machine, "id">, endpoint: Endpoint): string =>
  `machine ${machine.id} has no ${ENDPOINT_NAMES[endpoint]} endpoint`;

const missingEndpoint = (machine: Machine, endpoint: Endpoint): StepFailure =>
  new StepFailure("endpoint_missing", `${hasNoEndpoint(machine, endpoint)}; give it spec.${endpoint}_endpoint`, {
    facts: { at: endpoint },
  });

/** Comes before all questions about credentials: those of a place that there is not help nobody. */
export function requireEndpoint(machine: Machine, endpoint: Endpoint): void {
  if (machine.spec[endpoint] === null) throw missingEndpoint(machine, endpoint);
}

/**
 * Where the things are that a step works with.
 *
 * @throws StepFailure "fail" that says what is missing and where to give it.
 */
export interface StepTargets {
  bmc(): Promise<BmcTarget>;
  ssh(): Promise<SshTarget>;
  /** Empty takes the machine's own: where it is, else where it is to be. */
  cluster(ref: string): Promise<ClusterTarget>;
  image(ref: string): Promise<Image>;
  /** Where the BMC of the machine fetches the medium with the seed of an installation. */
  seedUrl(runId: string, token: string): string;
  /** The image with the seed in it, for a BMC that has no second drive. Refuses one that no seed can be written into. */
  seededImage(order: SeededImageOrder): Promise<SeededImage>;
  /** The version of that digest, if it is known here; else as the script is now. */
  script(ref: string, digest?: string): Promise<Runbook>;
}

export interface SeededImageOrder {
  readonly runId: string;
  readonly token: string;
  readonly location: string;
  readonly signal: AbortSignal;
}

/** Which cluster is meant: the one that is named, else the machine's own. */
export const clusterNameOf = (ref: string, machine: Machine): string => ref || ownClusterOf(machine);

/** `pin`: what its BMC must show where its record has no pin any more. */
export function bmcTargetOf(
  machine: Machine,
  { pin, ...credentials }: Pick<BmcTarget, "username" | "password"> & { readonly pin?: string },
): BmcTarget {
  const { bmc } = machine.spec;
  if (bmc === null) throw missingEndpoint(machine, "bmc");
  const fingerprint = machine.facts.certificateFingerprint ?? pin;
  const pinned = fingerprint === undefined ? {} : { fingerprint256: fingerprint };
  return {
    address: bmc.address,
    port: bmcPortOf({ ...bmc, protocol: bmcProtocolOf(machine.spec) }),
    scheme: bmc.scheme,
    ...credentials,
    trust: bmc.trust === "pin" ? { mode: "pin", ...pinned } : { mode: bmc.trust },
    ...(bmc.path !== undefined && { path: bmc.path }),
  };
}

/** Any key is taken only until one was seen, given or proved. */
export function sshTargetOf(
  machine: Machine,
  { username, credentials }: { readonly username: string; readonly credentials: SshCredentials },
): SshTarget {
  const { ssh } = machine.spec;
  if (ssh === null) throw missingEndpoint(machine, "ssh");
  return {
    address: sshAddressOf(machine) ?? ssh.address,
    port: ssh.port,
    username,
    credentials,
    hostKey: pinnedKeyOf(machine)?.key ?? null,
    jumpHosts: ssh.jumpHosts.map((jump) => ({ ...jump, username: jump.username ?? username })),
  };
}
