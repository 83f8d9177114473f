import type { CauseCode } from "../../kernel/causes.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import {
  componentsFor,
  type FirmwareComponent,
  type FirmwareDevice,
  type RackFirmware,
  suitsHardware,
  whyUnavailable,
} from "../rack-firmware/rack-firmware.ts";
import { reprovisionComesFirst } from "./first-request.ts";
import type {
  FabricPlan,
  FirmwarePlan,
  PowerTier,
  RackPayloads,
  Refused,
  Skipped,
  StagePayload,
  Through,
  ValidationPayloads,
} from "./payloads.ts";
import type { RackProfile } from "./profile.ts";
import type { Activity, ActivityKind, Rack, RackAdmission, Trigger, WantedVersions, WorkSet } from "./rack.ts";
import { type InScope, scopeOf } from "./scope.ts";

export interface RackLimits {
  /** How long an on-demand request keeps later work off its devices while it waits. */
  readonly claimWait: Duration;
  /** A rack manager does what BMCs and switches would do otherwise. */
  readonly hasRackManager: boolean;
  readonly firmwareAtOnce: number;
  readonly powerAtOnce: number;
  /** For one component of one device. */
  readonly flashDeadline: Duration;
  /** Racks that may be in maintenance before another one begins by itself: of those that were ready before, and of those that never were. */
  readonly maintenanceAtOnce: number;
  readonly ingestionAtOnce: number;
  /** After so many failures no maintenance begins by itself any more; 0: it always does. */
  readonly stopAfterFailures: number;
}

/** What a maintenance does, on which devices. */
export interface Work {
  readonly type: "work";
  readonly trigger: Trigger;
  readonly workSet: WorkSet;
  readonly payloads: RackPayloads;
  readonly initiator: string;
  /** From it follows the id of the run: the same work is begun once. A rack that is made again counts its states from 1 again. */
  readonly unique: readonly (string | number)[];
}

/** The pending request cannot be carried out any more, although it was accepted. */
export interface RefusedWork {
  readonly type: "refused";
  readonly why: string;
}

/** What leads the rack into maintenance, as it is now; null: nothing does. In error only a maintenance request does. */
function triggerOf(rack: Rack): Trigger | null {
  const { name } = rack.state;
  if (name === "discovering") return "ingestion";
  if (name === "ready" && reprovisionComesFirst(rack)) return "reprovision";
  return (name === "ready" || name === "error") && rack.maintenanceRequest !== null ? "on_demand" : null;
}

/** What is to be done with the rack, if anything. Pure: it goes by the rack as it was loaded, and by nothing else. */
export function planWork(rack: Rack, limits: RackLimits): Work | RefusedWork | null {
  const trigger = triggerOf(rack);
  if (trigger === null) return null;
  const request =
    trigger === "ingestion" ? null : trigger === "reprovision" ? rack.reprovisionRequest : rack.maintenanceRequest;
  const asked = trigger === "on_demand" ? request : null;
  const scope = scopeOf(rack, asked);
  if ("refused" in scope) return { type: "refused", why: scope.refused };
  const activities = new Map((asked?.activities ?? []).map((activity) => [activity.kind, activity]));
  const payloads = payloadsOf({ rack, limits, scope, activities });
  const { firmware_upgrade: firmware, configure_nmx_cluster: fabric } = payloads;
  return {
    type: "work",
    trigger,
    payloads,
    workSet: {
      machines: scope.trays.map(({ id }) => id),
      switches: scope.switches.map(({ id }) => id),
      shelves: scope.shelves.map(({ id }) => id),
      keptUnassigned: asked?.include_assigned ? [] : scope.keptUnassigned,
      unused: asked?.include_assigned ? [] : scope.mustStayUnassigned,
      leftOut: scope.leftOut,
      firmware: "firmware_id" in firmware ? { id: firmware.firmware_id, wanted: wantedOf(firmware) } : null,
      fabric: "topology" in fabric,
      ...("via" in fabric && { fabricVia: fabric.via }),
      isOff: isOff(payloads),
      trigger,
      ...(trigger !== "on_demand" && { admission: admissionOf(rack, limits) }),
      barsForMs: trigger === "on_demand" ? limits.claimWait : 0,
    },
    initiator: request === null ? `rack ${rack.id}` : request.initiator,
    unique: [rack.id, request?.id ?? `v${rack.stateVersion} ${rack.stateSince.toISOString()}`],
  };
}

/** A rack that was never ready serves nobody yet, so that more of them may be at it. */
const admissionOf = ({ facts: { hasValidated } }: Rack, limits: RackLimits): RackAdmission => ({
  ...(hasValidated
    ? { limit: "rack.maintenance_at_once", atOnce: limits.maintenanceAtOnce }
    : { limit: "rack.ingestion_at_once", atOnce: limits.ingestionAtOnce }),
  stopAfter: limits.stopAfterFailures,
});

const isOff = (payloads: RackPayloads): boolean =>
  "skip" in payloads.power_on_compute && "devices" in payloads.power_off_compute;

/** What the rack's own validation reads, of what its maintenance worked on. */
export function planValidation({ facts: { workSet } }: Rack): ValidationPayloads {
  const of = (kind: string, ids: readonly string[] = []) => ids.map((id) => ({ kind, id }));
  const devices = [
    ...of("machine", workSet?.machines),
    ...of("switch", workSet?.switches),
    ...of("power_shelf", workSet?.shelves),
  ];
  const wanted = workSet?.firmware?.wanted ?? NOTHING_WANTED;
  const switches = workSet?.switches ?? [];
  return {
    validate_devices:
      devices.length === 0
        ? skipped("no device was worked on")
        : workSet?.isOff
          ? skipped("devices were switched off as requested")
          : { devices, wanted },
    validate_fabric: workSet?.fabric
      ? { switches, ...(workSet.fabricVia && { via: workSet.fabricVia }) }
      : { skip: "this maintenance did not configure the fabric", notRequested: true },
  };
}

const NOTHING_WANTED: WantedVersions = { compute: [], switch: [], power_shelf: [] };

const skipped = (skip: string): Skipped => ({ skip });
const refused = (code: CauseCode, message: string): Refused => ({ refuse: { code, message } });
const NOT_REQUESTED: Skipped = { skip: "not requested", notRequested: true };

interface Planning {
  readonly rack: Rack;
  readonly limits: RackLimits;
  readonly scope: InScope;
  /** Empty: all, each with its defaults. */
  readonly activities: ReadonlyMap<ActivityKind, Activity>;
}

/** The configuration of a kind that is to be done; undefined where it was not requested. */
function configOf<K extends ActivityKind>(
  { activities }: Planning,
  kind: K,
): Extract<Activity, { kind: K }> | undefined {
  if (activities.size === 0) return { kind } as Extract<Activity, { kind: K }>;
  return activities.get(kind) as Extract<Activity, { kind: K }> | undefined;
}

function payloadsOf(planning: Planning): RackPayloads {
  const fabric = planFabric(planning);
  const firmware = planFirmware(planning);
  return {
    firmware_upgrade: "firmware_id" in firmware ? { ...firmware, awaits_fabric: "topology" in fabric } : firmware,
    configure_nmx_cluster: fabric,
    ...planPower(planning),
  };
}

function planFirmware(planning: Planning): StagePayload<FirmwarePlan> {
  const config = configOf(planning, "firmware_upgrade");
  if (config === undefined) return NOT_REQUESTED;
  const { rack } = planning;
  const { profile } = rack;
  const named = config.firmware_version ?? "";
  const firmware = named === "" ? rack.defaultFirmware : rack.requestedFirmware;
  if (named !== "" && firmware === null)
    return refused(
      "firmware_unknown",
      `there is no firmware ${named}; millwright rack-firmware list shows what there is`,
    );
  if (profile === null) return skipped("the rack has no profile, so its hardware type is not known");
  if (profile.hardwareType === null) return skipped(`profile ${profile.name} has no hardware type`);
  if (firmware === null) return skipped(`there is no default firmware for hardware type ${profile.hardwareType}`);
  if (!suitsHardware(firmware, profile.hardwareType))
    return refused(
      "firmware_mismatch",
      `firmware ${firmware.id} is for hardware type ${firmware.hardwareType}, and the rack's is ${profile.hardwareType}`,
    );
  const unavailable = whyUnavailable(firmware);
  if (unavailable !== undefined) {
    const mustNotBeSkipped = named !== "" && firmware.unreadable !== undefined;
    return mustNotBeSkipped ? refused("firmware_unavailable", unavailable) : skipped(unavailable);
  }
  return firmwareOn(planning, firmware, profile, config.components ?? []);
}

function firmwareOn(
  { scope: { trays, switches, shelves, unfit }, limits }: Planning,
  firmware: RackFirmware,
  profile: RackProfile,
  names: readonly string[],
): StagePayload<FirmwarePlan> {
  const known = new Set(firmware.components.map(({ component }) => component));
  const missing = names.filter((name) => !known.has(name));
  if (missing.length > 0)
    return refused("firmware_unknown", `firmware ${firmware.id} has no component ${missing.join(", ")}`);
  const on = (device: FirmwareDevice, devices: readonly { readonly id: string }[]) => {
    const components: readonly FirmwareComponent[] = componentsFor(firmware, device, profile.class, names);
    return { devices: components.length === 0 ? [] : devices.map(({ id }) => id), components };
  };
  const plan: FirmwarePlan = {
    ...throughOf(limits),
    firmware_id: firmware.id,
    at_once: limits.firmwareAtOnce,
    deadline_seconds: limits.flashDeadline / 1_000,
    awaits_fabric: false,
    compute: on("compute", trays),
    switch: on("switch", switches),
    power_shelf: on("power_shelf", shelves),
    unfit,
  };
  const count = plan.compute.devices.length + plan.switch.devices.length + plan.power_shelf.devices.length;
  if (count + unfit.length === 0) return skipped(`firmware ${firmware.id} has nothing for the devices in scope`);
  return plan;
}

const throughOf = ({ hasRackManager }: RackLimits): Through => (hasRackManager ? { via: "rack_manager" } : {});

const wantedOf = (plan: FirmwarePlan): WantedVersions => {
  const versions = ({ components }: FirmwarePlan["compute"]) =>
    components.map(({ component, version, targets }) => ({ component, version, targets }));
  return { compute: versions(plan.compute), switch: versions(plan.switch), power_shelf: versions(plan.power_shelf) };
};

/** What nobody asked for by name is skipped where it cannot be done; what somebody named fails. */
function planFabric(planning: Planning): StagePayload<FabricPlan> {
  if (configOf(planning, "configure_nmx_cluster") === undefined) return NOT_REQUESTED;
  const { rack, scope, activities, limits } = planning;
  const cannot = (why: string) => (activities.size === 0 ? skipped(why) : refused("fabric_not_configured", why));
  if (scope.switches.length === 0) return skipped("no switch is in scope");
  const topology = rack.profile?.topology ?? null;
  if (topology === null) return cannot("the rack's profile has no topology");
  const unreached = limits.hasRackManager ? [] : scope.switches.filter(({ hasOs }) => !hasOs).map(({ id }) => id);
  if (unreached.length > 0)
    return cannot(`address or credentials of the operating system are not on record: switch ${unreached.join(", ")}`);
  const switches = scope.switches.map(({ id }) => id);
  return { ...throughOf(limits), topology, switches, explicit: activities.size > 0 };
}

type PowerPayloads = Omit<RackPayloads, "firmware_upgrade" | "configure_nmx_cluster">;

/** Off from the trays down, on from the shelves up; shelves are never switched off. By default nothing is switched off. */
function planPower(planning: Planning): PowerPayloads {
  const config = configOf(planning, "power_sequence");
  const { scope, limits } = planning;
  const tier = (
    device: FirmwareDevice,
    desired: "on" | "off",
    devices: readonly { readonly id: string }[],
  ): StagePayload<PowerTier> => {
    if (config === undefined) return NOT_REQUESTED;
    const { operation = null } = config;
    if (desired === "off" && operation !== "off" && operation !== "cycle") return skipped("nothing is switched off");
    if (desired === "on" && operation === "off") return skipped("devices are switched off and stay off");
    if (devices.length === 0) return skipped(`no ${TIER_WORDS[device]} is in scope`);
    return { at_once: limits.powerAtOnce, tier: device, desired, devices: devices.map(({ id }) => id) };
  };
  const payloads: PowerPayloads = {
    power_off_compute: tier("compute", "off", scope.trays),
    power_off_switches: tier("switch", "off", scope.switches),
    power_on_shelves: tier("power_shelf", "on", scope.shelves),
    power_on_switches: tier("switch", "on", scope.switches),
    power_on_compute: tier("compute", "on", scope.trays),
  };
  const shortage = shortageOf(planning);
  if (shortage === undefined) return payloads;
  const first = "devices" in payloads.power_on_switches ? "power_on_switches" : "power_on_compute";
  return "devices" in payloads[first] ? { ...payloads, [first]: refused("power_capacity", shortage) } : payloads;
}

const TIER_WORDS = { compute: "compute tray", switch: "switch", power_shelf: "power shelf" } as const;

/** Whether the shelves can deliver what the whole rack takes. Where a figure is not on record, nobody can say. */
function shortageOf({ rack: { profile, trays, switches, shelves }, scope }: Planning): string | undefined {
  const { compute, switches: switchPart } = profile ?? {};
  if (compute?.watts == null || switchPart?.watts == null) return undefined;
  const needed = compute.watts * trays.length + switchPart.watts * switches.length;
  const inScope = new Set(scope.shelves.map(({ id }) => id));
  const on = shelves.filter(({ id, power }) => power === "on" || inScope.has(id));
  if (on.some(({ capacityWatts }) => capacityWatts === null)) return undefined;
  const capacity = on.reduce((sum, { capacityWatts }) => sum + (capacityWatts ?? 0), 0);
  if (capacity >= needed) return undefined;
  return `the power shelves that are on deliver ${capacity} W, and the rack takes ${needed} W`;
}
