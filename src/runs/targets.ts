import type { BmcTarget } from "../capabilities/bmc-target.ts";
import type { ClusterTarget } from "../capabilities/cluster-target.ts";
import type { Capability } from "../capabilities/provider.ts";
import type { SshCredentials, SshTarget } from "../capabilities/ssh-target.ts";
import { StepFailure } from "../kernel/errors.ts";
import { bmcPortOf, bmcProtocolOf } from "../lifecycles/machine/endpoint.ts";
import { type Machine, sshAddressOf } from "../lifecycles/machine/machine.ts";
import type { Runbook } from "./runbooks.ts";

/** What a payload can name that the server must have. An empty `ref` of a cluster means the machine's own. */
export interface Reference {
  readonly kind: "cluster" | "image" | "script";
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
}

/** What a machine's provider must be able to do for an image to be installed, by its kind. */
export const IMAGE_NEEDS = { iso: "imaging", disk: "imaging", netboot: "netInstall" } as const satisfies Record<
  NonNullable<Image["kind"]>,
  Capability
>;

/**
 * Where the things are that a step works with.
 *
 * @throws StepFailure "fail" that says what is missing and where to give it.
 */
export interface StepTargets {
  bmc(): Promise<BmcTarget>;
  ssh(): Promise<SshTarget>;
  /** Empty takes the machine's target cluster. */
  cluster(ref: string): Promise<ClusterTarget>;
  image(ref: string): Promise<Image>;
  /** As it was when the run was started, by its digest. */
  script(ref: string): Promise<Runbook>;
}

/** Which cluster a payload means: the one that it names, else the machine's own, else the usual one. */
export const clusterNameOf = (ref: string, { spec }: Machine): string => ref || spec.targetCluster || "default-cluster";

export function bmcTargetOf(machine: Machine, credentials: Pick<BmcTarget, "username" | "password">): BmcTarget {
  const { bmc } = machine.spec;
  if (bmc === null)
    throw new StepFailure("fail", `machine ${machine.id} has no BMC endpoint; give it spec.bmc_endpoint`);
  const { certificateFingerprint } = machine.facts;
  const pinned = certificateFingerprint === null ? {} : { fingerprint256: certificateFingerprint };
  return {
    address: bmc.address,
    port: bmcPortOf({ ...bmc, protocol: bmcProtocolOf(machine.spec) }),
    scheme: bmc.scheme,
    ...credentials,
    trust: bmc.trust === "pin" ? { mode: "pin", ...pinned } : { mode: bmc.trust },
    ...(bmc.path !== undefined && { path: bmc.path }),
  };
}

/**
 * The key that the machine must show is the one that its own installation proved, else the one that its owner gave; before
 * either, any.
 */
export function sshTargetOf(
  machine: Machine,
  { username, credentials }: { readonly username: string; readonly credentials: SshCredentials },
): SshTarget {
  const { ssh } = machine.spec;
  if (ssh === null)
    throw new StepFailure("fail", `machine ${machine.id} has no SSH endpoint; give it spec.ssh_endpoint`);
  return {
    address: sshAddressOf(machine) ?? ssh.address,
    port: ssh.port,
    username,
    credentials,
    hostKey: machine.facts.sshHostKey ?? ssh.hostKey,
    jumpHosts: ssh.jumpHosts.map((jump) => ({ ...jump, username: jump.username ?? username })),
  };
}
