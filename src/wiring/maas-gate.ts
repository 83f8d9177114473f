import { type Config, createAddressFilter } from "../config.ts";
import type { Log } from "../kernel/log.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { createMaas } from "../providers/maas/maas-provider.ts";
import { parseApiKey } from "../providers/maas/sign-in.ts";
import { createBmcGateway } from "../providers/transport/bmc-gateway.ts";
import type { MaasGate } from "../services/fleet/site-target.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import type { Database } from "../store/postgres/database.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { observeDeviceCalls } from "../telemetry/observers.ts";
import { readCaCertificates } from "./ca-certificates.ts";
import { createSignInLedger } from "./sign-in-ledger.ts";

/** A region has the care of many machines, and bears more calls at once than a BMC. */
const AT_ONCE = 16;
/** All nodes of a site may be onboarded at once; their calls wait for each other, and none is refused for that. */
const MOST_WAITING = 4_096;

/** How the MAAS of each site is called: within the networks, and with the authorities, that are set for BMCs. */
export function wireMaasGate(wiring: {
  readonly config: Config;
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
}): MaasGate & { close(): void } {
  const { config, db, secrets, log, metrics, clock } = wiring;
  const { caFile, allowedNetworks } = config.bmc;
  const gateway = createBmcGateway({
    ...{ clock, concurrency: AT_ONCE, queueLimit: MOST_WAITING },
    observer: observeDeviceCalls(metrics, log),
    ledger: createSignInLedger(db, secrets, log),
  });
  const maas = createMaas({
    ...{ gateway, clock, mayReach: createAddressFilter(allowedNetworks) },
    ...(caFile !== null && { caCertificates: readCaCertificates(caFile, "bmc.ca_file") }),
  });
  return {
    ...maas,
    checkKey: parseApiKey,
    close() {
      maas.close();
      gateway.close();
    },
  };
}
