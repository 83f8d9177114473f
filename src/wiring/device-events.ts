import type { BmcTarget } from "../capabilities/bmc-target.ts";
import type { DeviceEvents } from "../capabilities/events/device-events.ts";
import type { Provider } from "../capabilities/provider.ts";
import { type Config, publicUrlsOf } from "../config.ts";
import { type EventPlace, EventStreams } from "../engine/events/event-streams.ts";
import type { EventAddresses } from "../engine/events/inboxes.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { milliseconds } from "../kernel/time/duration.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { StepTargets } from "../runs/model/targets.ts";
import { EVENT_INBOXES, eventAddress } from "../services/device/event-addresses.ts";
import { noCredentials } from "../store/access/no-credentials.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import { signInToBmcs } from "../store/device/bmc-credentials.ts";
import type { ThingKey } from "../store/lifecycle/things.ts";
import * as work from "../store/lifecycle/work.ts";
import { nudgeCheck } from "../store/machine/condition-checks.ts";
import { machineStore } from "../store/machine/machines.ts";
import type { Database } from "../store/postgres/database.ts";
import { powerShelfStore } from "../store/power-shelf/power-shelves.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { observeEvents } from "../telemetry/observers.ts";
import type { MachineHardware } from "./machine-hardware.ts";
import { deviceTarget } from "./things/device-target.ts";

export interface DeviceEventsWiring {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly replica: string;
  readonly config: Config;
  readonly clock: Clock;
  /** Of shelves. */
  readonly provider: Provider;
  readonly hardware: Pick<MachineHardware, "providerOf">;
  readonly targetsOf: (machine: Machine) => StepTargets;
  /** This replica has something to claim. */
  readonly onWake: () => void;
}

/** The loop that follows the events of shelves and machines. */
export function wireDeviceEvents(wiring: DeviceEventsWiring): EventStreams {
  const { db, log, metrics, replica, config, clock, onWake } = wiring;
  const { monitor, conditions } = config;
  const streams = new EventStreams({
    db,
    log,
    clock,
    owner: replica,
    placesOf: (keys) => findPlaces(wiring, keys),
    most: monitor.eventsStreams,
    silence: monitor.eventsSilence,
    addresses: addressesOf(wiring),
    pollsEvery: (kind) => (kind === "machine" ? conditions.interval : monitor.interval),
    observer: observeEvents(metrics),
    async nudge(key) {
      if (key.kind === "machine") return nudgeCheck(db, key.id);
      await work.wake(db, [key]);
      onWake();
    },
  });
  metrics.collectWith(async () => ({ millwright_event_streams: [{ labels: {}, value: streams.open }] }));
  return streams;
}

/** Where BMCs reach this server, if they do. */
function addressesOf({ config, secrets, clock }: DeviceEventsWiring): EventAddresses | undefined {
  const { bmc: server } = publicUrlsOf(config);
  if (server === null || !config.monitor.eventsPush) return undefined;
  const listener = config.bmc.listen === null ? "shared" : "own";
  return {
    checkedEvery: milliseconds(Math.max(config.monitor.interval, config.monitor.eventsInterval)),
    isHere: (url) => url.startsWith(`${server}${EVENT_INBOXES}/`),
    addressFor: (claimed) => eventAddress(secrets, claimed, { server, now: clock.now(), listener }),
  };
}

const gone = ({ kind, id }: ThingKey): StepFailure => new StepFailure("target_gone", `there is no ${kind} ${id}`);

async function findPlaces(
  wiring: DeviceEventsWiring,
  keys: readonly ThingKey[],
): Promise<(EventPlace | StepFailure)[]> {
  const idsOf = (wanted: string) => keys.filter(({ kind }) => kind === wanted).map(({ id }) => id);
  const found = new Map([
    ...(await findShelfPlaces(wiring, idsOf("power_shelf"))),
    ...(await findMachinePlaces(wiring, idsOf("machine"))),
  ]);
  return keys.map((key) => found.get(key.id) ?? gone(key));
}

type Places = readonly (readonly [id: string, place: EventPlace | StepFailure])[];

async function findShelfPlaces({ db, secrets, provider }: DeviceEventsWiring, ids: readonly string[]): Promise<Places> {
  const { things } = await powerShelfStore.load(db, ids);
  const targets = await signInToBmcs(
    db,
    secrets,
    things.map((shelf) => ({ mac: shelf.bmc.mac, target: deviceTarget(shelf) })),
  );
  return things.map(({ id }, index) => [id, placeOf(provider.can.events, targets[index])]);
}

function placeOf(events: DeviceEvents | undefined, target: BmcTarget | AppError | undefined): EventPlace | StepFailure {
  if (events === undefined) return new StepFailure("not_on_this_server", "the provider follows no events");
  if (target === undefined)
    return new StepFailure("credentials_missing", "there are no credentials", { facts: { at: "bmc" } });
  return target instanceof AppError ? noCredentials(target, { at: "bmc" }) : { events, target };
}

async function findMachinePlaces(
  { db, hardware, targetsOf }: DeviceEventsWiring,
  ids: readonly string[],
): Promise<Places> {
  const { things } = await machineStore.load(db, ids);
  return Promise.all(
    things.map(async (machine): Promise<Places[number]> => {
      const events = hardware.providerOf(machine.spec)?.can.events;
      if (events === undefined)
        return [machine.id, new StepFailure("not_on_this_server", "its provider follows no events")];
      try {
        return [machine.id, { events, target: await targetsOf(machine).bmc() }];
      } catch (error) {
        if (error instanceof StepFailure) return [machine.id, error];
        throw error;
      }
    }),
  );
}
