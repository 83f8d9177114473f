import type { BmcTarget } from "../../capabilities/bmc-target.ts";
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

/** What steps on a tray, a switch or a shelf are given beside what all steps are. */
export const devicePartsOf = (
  { kind, id }: RunTarget,
  bmc: () => Promise<BmcTarget>,
  artifacts: ArtifactSource = NO_ARTIFACTS,
): Omit<OnDevice, "target"> => ({ device: { kind, id }, bmc, artifacts });
