import { applyRocePhase2 } from "./apply-roce-phase2.ts";
import { classifyDeployFailure } from "./classify-deploy-failure.ts";
import { commissionNode } from "./commission-node.ts";
import { configureStorage } from "./configure-storage.ts";
import { createOrFindInMaas } from "./create-or-find-in-maas.ts";
import { deployViaMaas } from "./deploy-via-maas.ts";
import { ensurePxeInterfaceAuto } from "./ensure-pxe-interface-auto.ts";
import { ensureHardwareSyncConfigured, waitForHardwareSyncHealthy } from "./hardware-sync.ts";
import { loadSiteConfig } from "./load-site-config.ts";
import { recoverForDatasourceRetry } from "./recover-for-datasource-retry.ts";
import { renderCloudInit } from "./render-cloud-init.ts";
import { resolvePowerCredentials } from "./resolve-power-credentials.ts";
import { waitForAgentEnrollment } from "./wait-for-agent-enrollment.ts";
import { waitForDeployed } from "./wait-for-deployed.ts";
import { waitForReady } from "./wait-for-ready.ts";

/** The kinds of steps that an onboarding consists of, in the order of its stages. */
export const onboardingSteps = [
  loadSiteConfig,
  resolvePowerCredentials,
  createOrFindInMaas,
  commissionNode,
  waitForReady,
  configureStorage,
  applyRocePhase2,
  ensurePxeInterfaceAuto,
  renderCloudInit,
  deployViaMaas,
  waitForDeployed,
  classifyDeployFailure,
  recoverForDatasourceRetry,
  ensureHardwareSyncConfigured,
  waitForHardwareSyncHealthy,
  waitForAgentEnrollment,
] as const;
