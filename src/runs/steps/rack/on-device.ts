import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { Thing } from "../../../kernel/lifecycle.ts";
import type { Activation } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import type { On } from "../../model/step.ts";
import type { RunTarget } from "../../targets/run-target.ts";

/** What is needed of a firmware record to work on one part of one device; `targets` as the device names its parts. */
export type FirmwarePayload = {
  readonly firmware_id: string;
  readonly component: string;
  readonly version: string;
  readonly digest: string;
  readonly targets: readonly string[];
  readonly activation: Activation;
};

/** Images that are sent to devices, by their digest. */
export interface ArtifactSource {
  /** Undefined where this server does not have it whole. */
  find(digest: string): Promise<Artifact | undefined>;
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
  bmc(): Promise<BmcTarget>;
  readonly artifacts: ArtifactSource;
}
