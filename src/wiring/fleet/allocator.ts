import { readFileSync } from "node:fs";
import { type Config, createAddressFilter } from "../../config.ts";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { createHttpAllocator } from "../../providers/allocator/http-allocator.ts";
import { createBmcGateway } from "../../providers/transport/bmc-gateway.ts";
import type { SecretStore } from "../../store/access/secrets.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { observeDeviceCalls } from "../../telemetry/observers.ts";
import { readCaCertificates } from "../ca-certificates.ts";
import { createSignInLedger } from "../sign-in-ledger.ts";

/** It has the use of all nodes in its care. */
const AT_ONCE = 16;

/** The allocator of the configuration; undefined where there is none. Its token is read once now, so that a mistake ends the start. */
export function wireAllocator(wiring: {
  readonly config: Config;
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
}): ReturnType<typeof createHttpAllocator> | undefined {
  const { config, db, secrets, log, metrics, clock } = wiring;
  const { url, tokenFile, caFile } = config.fleet.allocator;
  if (url === null || tokenFile === null) return undefined;
  const token = readToken(tokenFile);
  const gateway = createBmcGateway({
    ...{ clock, concurrency: AT_ONCE },
    observer: observeDeviceCalls(metrics, log),
    ledger: createSignInLedger(db, secrets, log),
  });
  const allocator = createHttpAllocator({
    ...{ url, token, gateway, mayReach: createAddressFilter(config.bmc.allowedNetworks) },
    ...(caFile !== null && { caCertificates: readCaCertificates(caFile, "fleet.allocator.ca_file") }),
  });
  return {
    ...allocator,
    close() {
      allocator.close();
      gateway.close();
    },
  };
}

function readToken(file: string): string {
  const field = "fleet.allocator.token_file";
  const next = "give the path of a file that holds the token, and nothing else";
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new AppError("failed_precondition", `${field}: ${file} cannot be read: ${messageOf(error)}`, { field, next });
  }
  if (/^[!-~]{1,4096}$/.test(text)) return text;
  throw new AppError("failed_precondition", `${field}: ${file} must hold one line of printable characters`, {
    field,
    next,
  });
}
