import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { RackManager } from "../../capabilities/rack/rack-manager.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { ArtifactSource, OnDevice } from "../../runs/steps/rack/on-device.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";

/** Where no firmware is kept. */
const NO_ARTIFACTS: ArtifactSource = {
  find: async () => undefined,
  uriFor: async () => {
    throw new StepFailure("not_on_this_server", "this server keeps no firmware files", {
      facts: { what: "setting", name: "firmware.directory" },
    });
  },
};

export interface DeviceTools {
  /** Firmware files as device runs have them. */
  readonly artifactSource?: ArtifactSource;
  /** The service that works on all devices of a rack. Absent: none is configured. */
  readonly rackManager?: RackManager;
  /** Told of each BMC whose new certificate was accepted after its flash. Absent: none is accepted. */
  readonly acceptCertificate?: (device: RunTarget, fingerprint256: string) => void;
}

/** What steps on a tray, a switch or a shelf are given beside what all steps are. */
export const devicePartsOf = (
  { kind, id }: RunTarget,
  bmc: () => Promise<BmcTarget>,
  { artifactSource: artifacts = NO_ARTIFACTS, rackManager, acceptCertificate }: DeviceTools,
): Omit<OnDevice, "target"> => ({
  device: { kind, id },
  bmc,
  artifacts,
  ...(rackManager && { rackManager }),
  ...(acceptCertificate && { acceptCertificate: (shown: string) => acceptCertificate({ kind, id }, shown) }),
});
