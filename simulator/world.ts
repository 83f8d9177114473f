import { checkFaultRule } from "./control-api.ts";
import type { FlashConduct, UpdateConduct } from "./devices/firmware/firmware-state.ts";
import { Machine } from "./devices/machine.ts";
import { PowerShelf } from "./devices/power-shelf.ts";
import { Switch } from "./devices/switch.ts";
import { FaultBook } from "./faults/fault-book.ts";
import { Cluster } from "./kubernetes/cluster.ts";
import { MAAS } from "./maas/maas-api.ts";
import { Region } from "./maas/region.ts";
import { NvueService } from "./nvue/nvue-service.ts";
import { RACK_MANAGER } from "./rack-manager/grpc-server.ts";
import { machineTree } from "./redfish/machine-resources.ts";
import { powerShelfTree } from "./redfish/power-shelf-resources.ts";
import type { RedfishDevice } from "./redfish/redfish-listener.ts";
import { RedfishService } from "./redfish/redfish-service.ts";
import { severalSystems } from "./redfish/several-systems.ts";
import { switchTree } from "./redfish/switch-resources.ts";
import type { SeededValues } from "./seeded-values.ts";
import type { SimulatedClock } from "./simulated-clock.ts";
import type { Site } from "./site.ts";
import { createSiteKeys, type SiteKeys } from "./ssh/site-keys.ts";
import type { StateJournal } from "./state-journal.ts";

const SHELF_TREES = { liteon: powerShelfTree("liteon"), standard: powerShelfTree("standard") } as const;
/** The journal's name for it: a site that was told keeps it. */
export const BOOT_SERVER = "boot-server";
const MACHINE_TREE = machineTree();
const SWITCH_TREE = switchTree();

/** All that exists in the datacentre, before anybody can reach it. */
export interface World {
  readonly shelves: ReadonlyMap<string, PowerShelf>;
  readonly machines: ReadonlyMap<string, Machine>;
  readonly switches: ReadonlyMap<string, Switch>;
  readonly clusters: readonly Cluster[];
  readonly byAddress: ReadonlyMap<string, RedfishDevice>;
  /** The machine whose own settings let it answer there. */
  machineAt(address: string): Machine | undefined;
  /** Undefined for a site without one. */
  readonly maas: Region | undefined;
  readonly faults: FaultBook;
  readonly keys: SiteKeys;
  /** What DHCP names; null: nobody. */
  readonly bootServer: { url: string | null };
  /** Called for machines that boot, or are about to. */
  onBoot(listener: (id: string) => void): void;
}

export function createWorld(parts: {
  /** Fault rules from the start. */
  atStart: readonly unknown[];
  site: Site;
  seeded: SeededValues;
  journal: StateJournal;
  clock: SimulatedClock;
}): World {
  const { site, seeded, journal, clock } = parts;
  const ids = [...site.shelves, ...site.machines, ...site.switches]
    .map(({ id }) => id)
    .concat(
      site.clusters.map(({ name }) => name),
      RACK_MANAGER,
      MAAS,
      site.maasHosts.map(({ id }) => id),
    );
  const atStart = parts.atStart.map((rule, index) => checkFaultRule(rule, ids, `faults[${index}]`));
  const faults = new FaultBook({ journal, seeded, realNow: clock.realNow, atStart });
  const surroundings = (kind: "shelf" | "machine" | "switch") => ({
    clock,
    seeded,
    load: (id: string) => journal.get(`${kind}/${id}`),
    save: (id: string, state: unknown) => journal.put(`${kind}/${id}`, state),
    isFaultPresent: (id: string) => faults.get(id) !== undefined,
    firmware: {
      load: (id: string) => journal.get(`firmware/${id}`),
      save: (id: string, state: unknown) => journal.put(`firmware/${id}`, state),
      conduct: (device: string) => conductOfUpdate(faults, device),
    },
  });
  const aroundShelves = surroundings("shelf");
  const moved = new Set<string>();
  const bootServer = { url: (journal.get(BOOT_SERVER) as string | undefined) ?? null };
  const bootListeners: ((id: string) => void)[] = [];
  const aroundMachines = {
    hangsInPost: (device: string) => faults.strike("hangs_in_post", { device }) !== undefined,
    hasBootServer: () => bootServer.url !== null,
    boots: (id: string) => {
      for (const each of bootListeners) each(id);
    },
    moved: (id: string) => void moved.add(id),
    ...surroundings("machine"),
    images: site.images,
    pxeImage: site.pxe.image,
    installFails: (device: string) => faults.strike("install_fails", { device }) !== undefined,
  };
  const shelves = new Map(site.shelves.map((spec) => [spec.id, new PowerShelf(spec, aroundShelves)]));
  const machines = new Map(site.machines.map((spec) => [spec.id, new Machine(spec, aroundMachines)]));
  const switches = createSwitches(site, {
    ...surroundings("switch"),
    fabricFault: (device) => faults.strike("fabric_never_configured", { device })?.id,
  });
  const behind = { faults, seeded, realNow: clock.realNow };
  const byAddress = new Map<string, RedfishDevice>();
  for (const device of shelves.values()) {
    const tree = SHELF_TREES[device.spec.layout];
    byAddress.set(device.spec.address, { device, service: new RedfishService({ device, tree, ...behind }) });
  }
  for (const device of switches.values()) {
    byAddress.set(device.spec.address, {
      device,
      service: new RedfishService({ device, tree: SWITCH_TREE, ...behind }),
    });
    const service = new NvueService(device, clock.realNow);
    byAddress.set(device.spec.nvos.address, { device, service, isUp: () => device.isUp });
  }
  for (const device of machines.values()) {
    const own = new RedfishService({ device, tree: MACHINE_TREE, ...behind });
    const neighbour = () => {
      const next = nextInRack(device, machines);
      const { accounts } = own;
      return next && new RedfishService({ device: next, tree: MACHINE_TREE, ...behind, accounts });
    };
    const service = severalSystems(device, own, neighbour);
    byAddress.set(device.spec.address, { device, service });
  }
  const clusters = site.clusters.map(({ name }) => new Cluster(name, { machines, journal, seeded, clock }));
  const bySshAddress = new Map([...machines.values()].map((machine) => [machine.spec.sshAddress, machine]));
  const machineAt = (address: string): Machine | undefined => {
    const usual = bySshAddress.get(address);
    if (usual?.addresses.includes(address)) return usual;
    return [...moved].map((id) => machines.get(id)).find((machine) => machine?.addresses.includes(address));
  };
  const keys = createSiteKeys(seeded);
  const onBoot = (listener: (id: string) => void) => void bootListeners.push(listener);
  const { maasHosts: hosts } = site;
  const maas = hosts.length === 0 ? undefined : new Region({ hosts, journal, clock, seeded, faults });
  return { shelves, machines, switches, clusters, byAddress, machineAt, maas, faults, keys, bootServer, onBoot };
}

function createSwitches(
  site: Site,
  around: Omit<ConstructorParameters<typeof Switch>[1], "inRack">,
): ReadonlyMap<string, Switch> {
  const byRack = new Map<string, Switch[]>();
  const inRack = (rack: string): readonly Switch[] => byRack.get(rack) ?? [];
  const all = site.switches.map((spec) => new Switch(spec, { ...around, inRack }));
  for (const each of all) byRack.set(each.spec.rack, [...inRack(each.spec.rack), each]);
  return new Map(all.map((each) => [each.spec.id, each]));
}

function conductOfUpdate(faults: FaultBook, device: string): UpdateConduct {
  const stuck = faults.strike("flash_stuck", { device });
  const silent = faults.strike("unreachable_after_flash", { device });
  return {
    flash:
      stuck === undefined
        ? conductOfFlash(faults, device)
        : { is: "stuck", percent: stuck.fault.percent, faultId: stuck.id },
    acceptsWrongImage: faults.strike("flash_wrong_image_accepted", { device }) !== undefined,
    silentAfterMs: silent?.fault.ms ?? 0,
    silentBy: silent?.id ?? null,
  };
}

function conductOfFlash(faults: FaultBook, device: string): FlashConduct {
  if (faults.strike("flash_fails", { device }) !== undefined) return { is: "failing" };
  return { is: faults.strike("flash_lies", { device }) === undefined ? "honest" : "lying" };
}

/** The one above it, and for the topmost the lowest; undefined for a machine that is alone in its rack. */
function nextInRack({ spec }: Machine, machines: ReadonlyMap<string, Machine>): Machine | undefined {
  const others = [...machines.values()].filter((one) => one.spec.rack === spec.rack && one.spec.id !== spec.id);
  return others.find((one) => one.spec.slot === spec.slot + 1) ?? others[0];
}
