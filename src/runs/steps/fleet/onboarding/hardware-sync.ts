import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { drifted, reachedBy } from "./maas-status.ts";
import { findBound, nameOf, type Onboarding, type OnOnboarding, parseOnboarding, patiently } from "./on-onboarding.ts";

/** What MAAS syncs by where the machine does not say: its own default. */
const USUAL_INTERVAL_SECONDS = 900;
/** MAAS itself counts a machine as out of sync after one and a half intervals. */
const GRACE = 1.5;

async function findDeployed(context: Onboarding) {
  const { machine } = await findBound(context);
  if (reachedBy(machine) !== "deployed") throw drifted(machine, "Deployed");
  return machine;
}

/** Whether the machine was deployed with hardware sync, which nothing but a deployment can switch on. */
export const ensureHardwareSyncConfigured = defineStepOn<OnOnboarding>()({
  kind: "ensure_hardware_sync_configured",
  needs: [],
  defaults: { timeout: seconds(300), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  probe: (context) =>
    patiently(async (): Promise<ProbeReport> => {
      const { hardwareSync } = await findDeployed(context);
      if (hardwareSync === null)
        throw failedAs(
          "hardware_sync_not_enabled",
          `${nameOf(context.target)} was deployed without hardware sync; only another deployment switches it on`,
        );
      return { state: "done", message: `every ${hardwareSync.intervalSeconds ?? USUAL_INTERVAL_SECONDS} s` };
    }),
});

/** Waits until the machine has synced its hardware within one and a half intervals. */
export const waitForHardwareSyncHealthy = defineStepOn<OnOnboarding>()({
  kind: "wait_for_hardware_sync_healthy",
  needs: [],
  defaults: { timeout: seconds(3_600), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  probe: (context) => patiently(() => look(context)),
});

async function look(context: Onboarding): Promise<ProbeReport> {
  const { hardwareSync } = await findDeployed(context);
  const interval = hardwareSync?.intervalSeconds ?? USUAL_INTERVAL_SECONDS;
  const last = hardwareSync?.lastSyncAt ?? null;
  const since = last?.toISOString() ?? "never";
  const isHealthy = last !== null && context.clock.now().getTime() <= last.getTime() + GRACE * interval * 1_000;
  if (isHealthy) return { state: "done", message: `synced at ${since}` };
  return {
    state: "in_progress",
    message: last === null ? "has not synced yet" : `synced last at ${since}`,
    cause: { code: "hardware_sync_unhealthy", facts: { since } },
    callsPerson: true,
  };
}
