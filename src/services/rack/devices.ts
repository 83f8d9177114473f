import type { Assigned, RackShelf, RackSwitch, Tray, WantedVersions } from "../../lifecycles/rack/rack.ts";
import { componentsFor, type FirmwareDevice } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { hostReprovisionStore } from "../../store/host-reprovision/host-reprovisions.ts";
import { listMachines, type MachineRecord } from "../../store/machine/machines.ts";
import { listPowerShelves, type PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";
import type { RackRecord } from "../../store/rack/racks.ts";
import { listSwitches, type SwitchRecord } from "../../store/switch/switches.ts";
import type { ServiceDeps } from "../call/deps.ts";

/** A device of a rack: how it is, why, and which firmware it has of that which it should have. */
export interface RackDevice {
  readonly kind: "machine" | "switch" | "power_shelf";
  readonly id: string;
  readonly name: string;
  readonly state: string;
  /** Where it stands, as far as it is known. */
  readonly slot: string;
  /** Of machines. */
  readonly assigned?: Assigned;
  readonly unprovenRun: string | null;
  /** Why it is not ready, or what it waits for; empty when there is nothing to say. */
  readonly why: string;
  /** As last read. */
  readonly power: string | null;
  readonly firmware: readonly ComponentVersion[];
}

export interface ComponentVersion {
  readonly component: string;
  /** As last read; null: not known. */
  readonly installed: string | null;
  readonly wanted: string;
}

/** The devices of one rack, from what is on record: no device is asked. */
export async function viewRackDevices({ db }: ServiceDeps, rack: RackRecord): Promise<readonly RackDevice[]> {
  const ids = (devices: readonly { readonly id: string }[]) => devices.map(({ id }) => id);
  const [machines, reprovisions, switches, shelves] = await Promise.all([
    listMachines(db, { ids: ids(rack.trays) }),
    hostReprovisionStore.load(db, ids(rack.trays)),
    listSwitches(db, { ids: ids(rack.switches) }),
    listPowerShelves(db, { ids: ids(rack.shelves) }),
  ]);
  const wanted = wantedFirmware(rack);
  const byId = <T extends { readonly id: string }>(devices: readonly T[]) =>
    new Map(devices.map((each) => [each.id, each]));
  const [ofMachine, ofReprovision, ofSwitch, ofShelf] = [
    byId<MachineRecord>(machines),
    byId(reprovisions.things),
    byId<SwitchRecord>(switches),
    byId<PowerShelfRecord>(shelves),
  ];
  return [
    ...rack.trays.map((tray) => {
      const machine = ofMachine.get(tray.id);
      return {
        ...trayDevice(tray, machine, ofReprovision.get(tray.id)),
        firmware: versions(wanted.compute, {
          ...(machine?.facts.bmcFirmware != null && { bmc: machine.facts.bmcFirmware }),
          ...machine?.facts.firmware,
        }),
      };
    }),
    ...rack.switches.map((each) => {
      const device = ofSwitch.get(each.id);
      const { bmcFirmware = null, firmware = {} } = device?.facts ?? {};
      return {
        ...switchDevice(each, device),
        firmware: versions(wanted.switch, { ...(bmcFirmware !== null && { bmc: bmcFirmware }), ...firmware }),
      };
    }),
    ...rack.shelves.map((each) => {
      const device = ofShelf.get(each.id);
      return { ...shelfDevice(each, device), firmware: versions(wanted.power_shelf, shelfVersions(device)) };
    }),
  ];
}

/** What the devices were flashed with last, else the default of the rack's hardware type. */
function wantedFirmware({ facts: { workSet }, defaultFirmware, profile }: RackRecord): WantedVersions {
  if (workSet?.firmware) return workSet.firmware.wanted;
  const of = (device: FirmwareDevice) =>
    defaultFirmware && profile ? componentsFor(defaultFirmware, device, profile.class) : [];
  return { compute: of("compute"), switch: of("switch"), power_shelf: of("power_shelf") };
}

type Described = Omit<RackDevice, "firmware">;
type Reprovision = Awaited<ReturnType<typeof hostReprovisionStore.load>>["things"][number];

function trayDevice(tray: Tray, machine: MachineRecord | undefined, own: Reprovision | undefined): Described {
  const isResting = tray.reprovision === null || tray.reprovision === "ready";
  const bmc = machine?.conditions.find(({ type }) => type === "BMCReachable");
  const silence = tray.ready || !isResting ? "" : bmc?.message || bmc?.reason || "its BMC was not checked yet";
  const { cause } = (own?.state ?? {}) as { readonly cause?: unknown };
  const upgrade = own?.outcome?.reason ?? (typeof cause === "string" ? cause : "");
  return {
    kind: "machine",
    id: tray.id,
    name: "",
    state: isResting ? (tray.ready ? "ready" : "not_reached") : (tray.reprovision ?? ""),
    slot: tray.slot ?? "",
    assigned: tray.assigned,
    unprovenRun: tray.unprovenRun,
    why: [silence, upgrade].filter((text) => text !== "").join("; "),
    power: machine?.facts.powerState ?? null,
  };
}

const whyOf = (device: SwitchRecord | PowerShelfRecord | undefined): string =>
  device?.outcome?.reason ?? device?.lastError ?? device?.state.cause ?? "";

const switchDevice = (each: RackSwitch, device: SwitchRecord | undefined): Described => ({
  kind: "switch",
  id: each.id,
  name: device?.name ?? "",
  state: each.state,
  slot: each.trayIndex === null ? "" : `tray ${each.trayIndex}`,
  unprovenRun: each.unprovenRun,
  why: whyOf(device),
  power: device?.facts.powerState ?? null,
});

const shelfDevice = (each: RackShelf, device: PowerShelfRecord | undefined): Described => ({
  kind: "power_shelf",
  id: each.id,
  name: device?.name ?? "",
  state: each.state,
  slot: "",
  unprovenRun: each.unprovenRun,
  why: whyOf(device),
  power: each.power,
});

/** Of its supplies, one version; where they differ, all of them. */
function shelfVersions(device: PowerShelfRecord | undefined): Readonly<Record<string, string>> {
  if (!device) return {};
  const supplies = [...new Set(device.facts.powerSupplies.flatMap(({ firmware }) => firmware ?? []))];
  const { bmcFirmware } = device.facts;
  return {
    ...(bmcFirmware !== null && { bmc: bmcFirmware, pmc: bmcFirmware }),
    ...(supplies.length > 0 && { psu: supplies.join(", ") }),
  };
}

const versions = (
  wanted: WantedVersions[FirmwareDevice],
  installed: Readonly<Record<string, string>>,
): readonly ComponentVersion[] =>
  wanted.map(({ component, version, targets }) => ({
    component,
    wanted: version,
    installed: installedOf(installed, component, targets),
  }));

/** Devices name their parts as they like: by the record's targets, by its word, or with its word among others. A guess is none. */
function installedOf(
  installed: Readonly<Record<string, string>>,
  component: string,
  targets: readonly string[],
): string | null {
  const names = Object.keys(installed);
  const lastOf = (target: string) => target.split("/").findLast((part) => part !== "") ?? "";
  const isOneOf = (name: string, words: readonly string[]) =>
    words.some((word) => word.toLowerCase() === name.toLowerCase());
  const named = names.filter((name) => isOneOf(name, [...targets.map(lastOf), component]));
  const alike = names.filter((name) => isOneOf(component, name.split(/[^A-Za-z0-9]+/)));
  const found = named.length > 0 ? named : alike;
  const all = [...new Set(found.map((name) => installed[name] ?? ""))];
  return all.length === 1 ? (all[0] ?? null) : null;
}
