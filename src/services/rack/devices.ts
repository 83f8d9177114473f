import { ONLY_MAAS } from "../../lifecycles/machine/in-maas.ts";
import type { Assigned, RackShelf, RackSwitch, Tray, WantedVersions } from "../../lifecycles/rack/rack.ts";
import { componentsFor, type FirmwareDevice } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import {
  findLastWanted,
  findWrittenVersions,
  type LastWanted,
  type WrittenVersion,
} from "../../store/component/firmware-runs.ts";
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
  /** The record that says which firmware it should have; null: none does. */
  readonly wantedFirmware: string | null;
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
  const [flashes, lastWanted, machines, reprovisions, switches, shelves] = await Promise.all([
    // A tray is inspected when it is new; what was written to it since, only the run knows.
    findWrittenVersions(db, "machine", ids(rack.trays)),
    findLastWanted(db, rack.id),
    listMachines(db, { ids: ids(rack.trays) }),
    hostReprovisionStore.load(db, ids(rack.trays)),
    listSwitches(db, { ids: ids(rack.switches) }),
    listPowerShelves(db, { ids: ids(rack.shelves) }),
  ]);
  const byId = <T extends { readonly id: string }>(devices: readonly T[]) =>
    new Map(devices.map((each) => [each.id, each]));
  const [ofMachine, ofReprovision, ofSwitch, ofShelf] = [
    byId<MachineRecord>(machines),
    byId(reprovisions.things),
    byId<SwitchRecord>(switches),
    byId<PowerShelfRecord>(shelves),
  ];
  const withFirmware = (device: FirmwareDevice, described: Described, installed: Versions): RackDevice => {
    const { id, versions } = wantedOf(rack, device, lastWanted.get(`${device} ${described.id}`));
    return { ...described, wantedFirmware: id, firmware: compared(versions, installed) };
  };
  return [
    ...rack.trays.map((tray) => {
      const machine = ofMachine.get(tray.id);
      const described = trayDevice(tray, machine, ofReprovision.get(tray.id));
      return withFirmware("compute", described, {
        ...versionsOf(machine?.facts),
        ...writtenTo(flashes.get(tray.id), machine),
      });
    }),
    ...rack.switches.map((each) => {
      const device = ofSwitch.get(each.id);
      return withFirmware("switch", switchDevice(each, device), versionsOf(device?.facts));
    }),
    ...rack.shelves.map((each) => {
      const device = ofShelf.get(each.id);
      return withFirmware("power_shelf", shelfDevice(each, device), shelfVersions(device));
    }),
  ];
}

type Versions = Readonly<Record<string, string>>;

/** What the last maintenance that covered the device wanted it to have, else the default of the rack's hardware type. */
function wantedOf(
  { defaultFirmware, profile }: RackRecord,
  device: FirmwareDevice,
  last: LastWanted | undefined,
): { readonly id: string | null; readonly versions: WantedVersions[FirmwareDevice] } {
  if (last) return { id: last.firmwareId, versions: last.components };
  if (!defaultFirmware || !profile) return { id: null, versions: [] };
  return { id: defaultFirmware.id, versions: componentsFor(defaultFirmware, device, profile.class) };
}

function versionsOf(
  facts: { readonly bmcFirmware: string | null; readonly firmware: Versions | null } | undefined,
): Versions {
  if (!facts) return {};
  return { ...(facts.bmcFirmware !== null && { bmc: facts.bmcFirmware }), ...facts.firmware };
}

type Described = Omit<RackDevice, "firmware" | "wantedFirmware">;
type Reprovision = Awaited<ReturnType<typeof hostReprovisionStore.load>>["things"][number];

function trayDevice(tray: Tray, machine: MachineRecord | undefined, own: Reprovision | undefined): Described {
  if (tray.inMaas) return { ...placed(tray, machine), state: "ready", why: `${ONLY_MAAS}: the rack leaves it alone` };
  const isResting = tray.reprovision === null || tray.reprovision === "ready";
  const bmc = machine?.conditions.find(({ type }) => type === "BMCReachable");
  const silence = tray.ready || !isResting ? "" : bmc?.message || bmc?.reason || "its BMC was not checked yet";
  const { cause } = (own?.state ?? {}) as { readonly cause?: unknown };
  const upgrade = own?.outcome?.reason ?? (typeof cause === "string" ? cause : "");
  return {
    ...placed(tray, machine),
    state: isResting ? (tray.ready ? "ready" : "not_reached") : (tray.reprovision ?? ""),
    why: [silence, upgrade].filter((text) => text !== "").join("; "),
  };
}

const placed = (tray: Tray, machine: MachineRecord | undefined): Omit<Described, "state" | "why"> => ({
  kind: "machine",
  id: tray.id,
  name: "",
  slot: tray.slot ?? "",
  assigned: tray.assigned,
  unprovenRun: tray.unprovenRun,
  power: machine?.facts.powerState ?? null,
});

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

/** The versions that runs have proven on a tray since it was inspected, under the names that the inspection has for them. */
function writtenTo(written: readonly WrittenVersion[] = [], machine: MachineRecord | undefined): Versions {
  const { observedAt = null, firmware = null } = machine?.facts ?? {};
  const nameOf = (component: string) =>
    Object.keys(firmware ?? {}).find((name) => name.toLowerCase() === component.toLowerCase()) ?? component;
  return Object.fromEntries(
    written
      .filter(({ at }) => observedAt === null || at > new Date(observedAt))
      .flatMap(({ component, version }) => [...new Set([nameOf(component), component])].map((name) => [name, version])),
  );
}

/** Of its supplies, one version; where they differ, all of them. */
function shelfVersions(device: PowerShelfRecord | undefined): Versions {
  if (!device) return {};
  const supplies = [...new Set(device.facts.powerSupplies.flatMap(({ firmware }) => firmware ?? []))];
  const { bmcFirmware } = device.facts;
  return {
    ...(bmcFirmware !== null && { bmc: bmcFirmware, pmc: bmcFirmware }),
    ...(supplies.length > 0 && { psu: supplies.join(", ") }),
  };
}

const compared = (wanted: WantedVersions[FirmwareDevice], installed: Versions): readonly ComponentVersion[] =>
  wanted.map(({ component, version, targets }) => ({
    component,
    wanted: version,
    installed: installedOf(installed, component, targets),
  }));

/** Devices name their parts as they like: by the record's targets, by its word, or with its word among others. A guess is none. */
function installedOf(installed: Versions, component: string, targets: readonly string[]): string | null {
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
