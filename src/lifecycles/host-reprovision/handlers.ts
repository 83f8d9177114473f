import type { CallContext } from "../../capabilities/call.ts";
import { alert, type CreateEffect, type Effect } from "../../kernel/effects.ts";
import { type Handlers, happened, nothingToDo, type Outcome, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, describeDuration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { isInMaas, ONLY_MAAS } from "../machine/in-maas.ts";
import { machineLifecycle } from "../machine/lifecycle.ts";
import { componentsFor, type FirmwareComponent, whyUnavailable } from "../rack-firmware/rack-firmware.ts";
import type { HostReprovision, ReprovisionRequest } from "./host-reprovision.ts";
import type { hostReprovisionLifecycle } from "./lifecycle.ts";

/** What the run of an upgrade is made from. */
export interface OwnUpgrade {
  readonly host: HostReprovision;
  readonly firmwareId: string;
  readonly components: readonly FirmwareComponent[];
  readonly initiator: string;
  /** However often the same is asked for, there is one run. */
  readonly unique: string;
}

export interface HostReprovisionContext {
  readonly call: CallContext;
  readonly clock: Clock;
  readonly retryInterval: Duration;
  readonly maxRetries: number;
  /** The effect that starts the run; its id is the run's. */
  readonly startUpgrade: (upgrade: OwnUpgrade) => CreateEffect;
}

/** Whom nobody has to wake: whether a tray is in use is checked by others, all the time. */
const IN_USE_RECHECK: Duration = seconds(30);
const RUN_RECHECK: Duration = minutes(5);
const SOURCE = "host-fw-update";

/** Tells others to keep away from the machine while its firmware is written. It says nothing of its health. */
export const workAlert = (machineId: string, open: { readonly message: string } | null): Effect =>
  alert(machineLifecycle, machineId, { source: SOURCE, id: "HostFirmwareUpdate", ...(open ?? { ended: true }) });

/** Upgrades that a caller asked for, and those that are tried again; what a rack does to the tray, the rack's runs report. */
export const hostReprovisionHandlers: Handlers<
  typeof hostReprovisionLifecycle,
  HostReprovision,
  HostReprovisionContext
> = {
  async ready(host, context) {
    const { reprovisionRequest } = host;
    return reprovisionRequest ? begin(host, context, { request: reprovisionRequest, retry: 0 }) : nothingToDo(null);
  },

  async checking_firmware_v2(host) {
    const run = host.related?.run ?? null;
    if (run === null || isEnded(run.state)) {
      const message = run === null ? "its run is gone" : `its run ${run.id} ended ${run.state} without its result`;
      return happened("run_lost", { message, cause: { code: "unknown" }, effects: [workAlert(host.id, null)] });
    }
    return waitFor(`run ${run.id} checks and writes its firmware`, RUN_RECHECK);
  },

  async waiting_for_rack_firmware_upgrade(host, context) {
    const { reprovisionRequest: request, state } = host;
    // The claim is the rack's as long as it works: until it lets go, the commit of the upgrade waits for it.
    if (request?.reset) {
      const begun = begin(host, context, { request, retry: 0 });
      if (begun.type !== "happened" || begun.event === "own_upgrade_begun")
        return begun as Outcome<"own_upgrade_begun">;
    }
    return waitFor(`rack ${state.rack ?? ""} renews its firmware`, RUN_RECHECK);
  },

  async failed_firmware_upgrade(host, context) {
    const { reprovisionRequest: request, facts } = host;
    if (request) return begin(host, context, { request, retry: 0 });
    const { retryCount, reportedAt, exhausted } = facts;
    if (retryCount >= context.maxRetries)
      return exhausted
        ? nothingToDo(null)
        : happened("retries_exhausted", { message: `its firmware upgrade failed, also ${retryCount} retries of it` });
    const since = reportedAt === null ? host.stateSince.getTime() : Date.parse(reportedAt);
    const left = since + context.retryInterval - context.clock.now().getTime();
    if (left > 0) {
      const reason = `retry ${retryCount + 1} of ${context.maxRetries} begins ${describeDuration(context.retryInterval)} after the failure`;
      return waitFor(reason, milliseconds(left));
    }
    const retried = begin(host, context, { request: null, retry: retryCount + 1 });
    // Nobody asked, so nobody is told that there is nothing to do.
    return retried.type === "happened" && retried.event === "upgrade_skipped"
      ? waitFor(retried.message ?? "", IN_USE_RECHECK)
      : retried;
  },
};

const isEnded = (state: string): boolean => state === "SUCCEEDED" || state === "FAILED" || state === "CANCELED";

interface Beginning {
  readonly request: ReprovisionRequest | null;
  readonly retry: number;
}

function begin(
  host: HostReprovision,
  { startUpgrade }: HostReprovisionContext,
  { request, retry }: Beginning,
): Outcome<"own_upgrade_begun" | "upgrade_skipped"> {
  const { id, machine, assigned, firmware, firmwareClass, stateVersion, stateSince } = host;
  const skipped = (message: string) => happened("upgrade_skipped", { message: `firmware upgrade skipped: ${message}` });
  if (machine === null || machine.state.name === "RETIRED") return skipped(`machine ${id} is retired`);
  if (isInMaas(machine.spec)) return skipped(`of machine ${id} ${ONLY_MAAS}`);
  if (firmware === null) return skipped(`${describeRack(machine.spec.rack)} has no default firmware`);
  const unavailable = whyUnavailable(firmware);
  if (unavailable !== undefined) return skipped(unavailable);
  const components = componentsFor(firmware, "compute", firmwareClass);
  if (components.length === 0)
    return skipped(`${firmware.id} has no firmware for compute trays of class ${firmwareClass}`);
  if (assigned !== "no") {
    const why = assigned === "yes" ? "is in use" : "was not checked yet, so it may be in use";
    return waitFor(`machine ${id} ${why}: put it into maintenance, and its firmware is upgraded then`, IN_USE_RECHECK);
  }
  const run = startUpgrade({
    host,
    firmwareId: firmware.id,
    components,
    initiator: request?.initiator ?? "host_reprovision",
    unique: request?.id ?? `v${stateVersion} ${stateSince.toISOString()}`,
  });
  return happened("own_upgrade_begun", {
    data: { retry, run: run.id, request },
    effects: [
      run,
      workAlert(id, { message: `its firmware is being checked against ${firmware.id}, and upgraded where it differs` }),
    ],
  });
}

const describeRack = (rack: string | null): string => (rack === null ? "it is in no rack, so it" : `rack ${rack}`);
