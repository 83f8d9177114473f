import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { RackManager } from "../../../capabilities/rack/rack-manager.ts";
import type { Thing } from "../../../kernel/lifecycle.ts";
import type { On } from "../../model/step.ts";
import type { RunTarget } from "../../targets/run-target.ts";

/** Images that are sent to devices, by their digest. */
export interface ArtifactSource {
  /** Undefined where this server does not have it whole. */
  find(digest: string): Promise<Artifact | undefined>;
  /** Why it is not here yet; undefined once it is. A file that is not here is downloaded again. Absent: what is not found does not come. */
  whyMissing?(digest: string): Promise<string | undefined>;
  /** Where the device fetches it. Nobody can guess the address, and it expires. */
  uriFor(digest: string, device: RunTarget): Promise<string>;
}

export interface Artifact {
  readonly name: string;
  readonly bytes: number;
  chunks(): AsyncIterable<Uint8Array>;
}

/** What steps on a tray, a switch or a shelf work with, whichever it is. */
export interface OnDevice<T extends Thing = Thing> extends On<T> {
  /** What the run works on, by its kind and id. */
  readonly device: RunTarget;
  bmc(): Promise<BmcTarget>;
  readonly artifacts: ArtifactSource;
  /** The service that works on all devices of a rack. Absent: none is configured. */
  readonly rackManager?: RackManager;
  /** Tells whoever runs this server that a new certificate of this BMC was accepted. Absent: none is accepted. */
  readonly acceptCertificate?: (fingerprint256: string) => void;
}
