import type { ManagedDeviceSpec } from "./managed-device.ts";
import type { Power } from "./power.ts";

/** What a machine is; follows from the site and the seed and never changes. */
export interface MachineSpec extends ManagedDeviceSpec {
  readonly kind: "machine";
  /** Where its SSH server answers while its operating system is up. */
  readonly sshAddress: string;
  readonly sshPassword: string;
  /** Of its own network ports, the first one first. */
  readonly macs: readonly string[];
  readonly systemUuid: string;
  readonly initialPower: Power;
  /** The image on its disk when it is first started; null for an empty disk. */
  readonly initialImage: string | null;
  readonly initialCluster: string | null;
  readonly behindBastion: boolean;
  /** Nobody has written it down: it is in no inventory. */
  readonly isUnknown: boolean;
}
