import { cleanupStorage, drainNode, removeNodeRecord, scrubGpu, validateCleanNode } from "./ask-agent.ts";
import { cleanupSecrets } from "./cleanup-secrets.ts";
import { powerOffMaasNode, releaseMaasNode, removeMaasRecord } from "./leave-maas.ts";
import { disableNode, forceReleaseAllocations, retireNode } from "./leave-service.ts";

/** The stages of a decommission. It shares `load_site_config`, and those of a deployment, with the onboarding. */
export const decommissionSteps = [
  ...[disableNode, forceReleaseAllocations, drainNode, cleanupStorage, scrubGpu, validateCleanNode],
  ...[releaseMaasNode, powerOffMaasNode, retireNode, removeNodeRecord, cleanupSecrets, removeMaasRecord],
] as const;
