import type { FaultBook } from "../faults/fault-book.ts";
import type { FaultType } from "../faults/fault-rule.ts";
import type { SeededValues } from "../seeded-values.ts";
import type { SimulatedClock } from "../simulated-clock.ts";
import type { StateJournal } from "../state-journal.ts";
import { conflict, invalid, notFound } from "./api-failure.ts";
import { commissionedPorts, discoveredPort } from "./hardware.ts";
import type { HostSpec } from "./host.ts";
import { KnownMachines } from "./known-machines.ts";
import type { EventRecord, MachineRecord } from "./machine-record.ts";
import * as status from "./statuses.ts";

export interface RegionOptions {
  readonly hosts: readonly HostSpec[];
  readonly journal: StateJournal;
  readonly clock: SimulatedClock;
  readonly seeded: SeededValues;
  readonly faults: FaultBook;
}

/** One call that changes something, as MAAS's own log has it. */
export interface CallSeen {
  readonly number: number;
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly op: string | null;
  readonly status: number;
}

const MACHINE = "maas/machine/";
const CALL = "maas/call/";
const COUNTER = "maas/counter";
const EVENTS_KEPT = 200;
/** Simulated time. */
const TESTING_MS = 60_000;

/** A MAAS region with its machines. Changes that take time are made when somebody reads the machine after they were due. */
export class Region {
  readonly hosts: ReadonlyMap<string, HostSpec>;
  readonly #hostsByPlace: ReadonlyMap<string, HostSpec>;
  readonly clock: SimulatedClock;
  readonly faults: FaultBook;
  readonly #journal: StateJournal;
  readonly #seeded: SeededValues;
  /** By what MAAS tells machines apart, so that it can have thousands. */
  readonly #known = new KnownMachines();
  /** Hears of each machine as it is from now on. */
  onSaved: (machine: MachineRecord) => void = () => {};

  constructor({ hosts, journal, clock, seeded, faults }: RegionOptions) {
    this.hosts = new Map(hosts.map((host) => [host.id, host]));
    this.#hostsByPlace = new Map(hosts.flatMap((host) => [host.ipmiAddress, host.mac].map((place) => [place, host])));
    this.clock = clock;
    this.faults = faults;
    this.#journal = journal;
    this.#seeded = seeded;
    for (const key of journal.keys(MACHINE)) this.#known.put(journal.get(key) as MachineRecord);
    if (journal.get(COUNTER) !== undefined) return;
    journal.put(COUNTER, 0);
    for (const host of hosts) if (host.isDiscovered) this.discover(host);
  }

  machines(): readonly MachineRecord[] {
    return this.#known.systemIds().map((id) => this.#settled(this.#journal.get(MACHINE + id) as MachineRecord));
  }

  /** The machine of this name; undefined: there is none. */
  named(hostname: string): MachineRecord | undefined {
    const id = this.#known.byHostname(hostname);
    return id === undefined ? undefined : this.machine(id);
  }

  machine(systemId: string): MachineRecord {
    const found = this.#journal.get(MACHINE + systemId) as MachineRecord | undefined;
    if (found === undefined) throw notFound("Machine");
    return this.#settled(found);
  }

  save(machine: MachineRecord): MachineRecord {
    this.#known.put(machine);
    this.#journal.put(MACHINE + machine.systemId, machine);
    this.onSaved(machine);
    return machine;
  }

  remove(systemId: string): void {
    this.#known.remove(systemId);
    this.#journal.delete(MACHINE + systemId);
  }

  /** The next of all numbers that MAAS gives out: ids of events, links and calls. */
  nextNumber(): number {
    const number = (this.#journal.get(COUNTER) as number) + 1;
    this.#journal.put(COUNTER, number);
    return number;
  }

  /** The server whose management controller has the address, or whose boot port one of the MAC addresses is. */
  findHost({ ipmiAddress, macs }: { readonly ipmiAddress: string | undefined; readonly macs: readonly string[] }) {
    const places = [...(ipmiAddress === undefined ? [] : [ipmiAddress]), ...macs];
    return places.map((place) => this.#hostsByPlace.get(place)).find((host) => host !== undefined);
  }

  hostOf({ hostId }: MachineRecord): HostSpec | undefined {
    return hostId === null ? undefined : this.hosts.get(hostId);
  }

  /** Whether the next one of these goes wrong for this machine. */
  goesWrong(type: FaultType, machine: MachineRecord): boolean {
    return this.faults.strike(type, { device: machine.hostId ?? machine.systemId }) !== undefined;
  }

  /** Somebody switches a server on that MAAS does not know: it boots from the network, and MAAS enlists it. */
  discover(host: HostSpec): MachineRecord {
    return this.add({ host, hostname: `${this.#seeded.hex(`${host.id}/enlisted`, 6)}-node`, interfaces: [host.mac] });
  }

  add(given: {
    readonly host: HostSpec | undefined;
    readonly hostname: string;
    readonly interfaces: readonly string[];
    readonly architecture?: string;
    readonly powerType?: string;
    readonly powerParameters?: Readonly<Record<string, string>>;
    readonly description?: string;
  }): MachineRecord {
    if (this.#known.byHostname(given.hostname) !== undefined)
      throw invalid("hostname", "Node with this Hostname already exists.");
    for (const mac of given.interfaces) {
      const other = this.#known.byMac(mac);
      if (other !== undefined)
        throw invalid("mac_addresses", `MAC address ${mac} already in use on ${this.machine(other).hostname}.`);
    }
    const number = this.nextNumber();
    const machine: MachineRecord = {
      systemId: this.#seeded.label(`maas/${number}`, 6).toLowerCase(),
      hostId: given.host?.id ?? null,
      hostname: given.hostname,
      description: given.description ?? "",
      architecture: given.architecture ?? "amd64/generic",
      status: status.NEW,
      due: null,
      previous: status.NEW,
      powerType: given.powerType ?? "",
      powerParameters: given.powerParameters ?? {},
      power: given.host === undefined ? "unknown" : "off",
      owner: null,
      ownerData: {},
      isLocked: false,
      errorDescription: "",
      distroSeries: "",
      userData: null,
      hardwareSync: null,
      deployedAt: null,
      storage: null,
      interfaces: given.interfaces.slice(0, 1).map(discoveredPort),
      installation: null,
      events: [],
    };
    return this.save(this.noted(machine, "INFO", "Node changed status", "New"));
  }

  noted(
    machine: MachineRecord,
    level: EventRecord["level"],
    type: string,
    description: string,
    at = this.clock.now(),
  ): MachineRecord {
    const event = { id: this.nextNumber(), at, level, type, description };
    return { ...machine, events: [...machine.events, event].slice(-EVENTS_KEPT) };
  }

  /** The machine in another status, if MAAS knows the way there. */
  moved(machine: MachineRecord, to: status.MaasStatus, at = this.clock.now()): MachineRecord {
    if (!status.mayFollow(machine.status, to))
      throw conflict(`Invalid transition: ${status.nameOf(machine.status)} -> ${status.nameOf(to)}.`);
    const moved = { ...machine, status: to, previous: machine.status, due: null };
    return this.noted(
      moved,
      "INFO",
      "Node changed status",
      `From '${status.nameOf(machine.status)}' to '${status.nameOf(to)}'`,
      at,
    );
  }

  #settled(machine: MachineRecord): MachineRecord {
    const { due } = machine;
    if (due === null || due.at > this.clock.now()) return machine;
    const moved = this.moved(machine, due.to, due.at);
    const told = due.why === "" ? moved : this.noted(moved, "ERROR", "Script result", due.why, due.at);
    return this.save(this.#consequences(told, machine.status, due.at));
  }

  #consequences(machine: MachineRecord, from: status.MaasStatus, at: number): MachineRecord {
    switch (machine.status) {
      case status.READY:
        return from === status.COMMISSIONING ? this.#commissioned(machine) : this.#released(machine);
      case status.TESTING:
        return this.#tested(machine, at);
      case status.DEPLOYED:
        return {
          ...machine,
          deployedAt: at,
          installation: { ok: true, output: "curtin: Installation finished.\n" },
          interfaces: machine.interfaces.map((each) => addressed(each, machine)),
        };
      case status.FAILED_DEPLOYMENT:
        return { ...machine, installation: { ok: false, output: machine.events.at(-1)?.description ?? "" } };
      default:
        return machine;
    }
  }

  #commissioned(machine: MachineRecord): MachineRecord {
    const host = this.hostOf(machine);
    if (host === undefined) return machine;
    const hasBossDisk = host.hasBossDisk && !this.goesWrong("no_boss_disk", machine);
    return {
      ...machine,
      power: "off",
      // The first disk that commissioning found, whatever it is for.
      storage: { bootDisk: 1, layout: "flat", hasBossDisk },
      interfaces: commissionedPorts(host),
    };
  }

  #released(machine: MachineRecord): MachineRecord {
    const left = emptied(machine);
    return this.goesWrong("power_off_ignored", machine) ? { ...left, power: machine.power } : left;
  }

  /** Only a commissioning whose tests are to fail leads here by itself. */
  #tested(machine: MachineRecord, at: number): MachineRecord {
    const why = "smartctl-validate failed: sda is worn out";
    return { ...machine, due: { at: at + TESTING_MS, to: status.FAILED_TESTING, why } };
  }

  noteCall(call: Omit<CallSeen, "number" | "at">): void {
    const number = this.nextNumber();
    const at = new Date(this.clock.realNow()).toISOString();
    this.#journal.put(`${CALL}${number}`, { number, at, ...call });
  }

  calls(): readonly CallSeen[] {
    return this.#journal.keys(CALL).map((key) => this.#journal.get(key) as CallSeen);
  }
}

/** What a release leaves: nobody's, with nothing on it. */
const emptied = (machine: MachineRecord): MachineRecord => ({
  ...machine,
  ...{ power: "off", owner: null, ownerData: {}, distroSeries: "", userData: null, hardwareSync: null },
  ...{ deployedAt: null, installation: null, errorDescription: "" },
  interfaces: machine.interfaces.map((each) => ({
    ...each,
    links: each.links.map((link) => (link.mode === "auto" ? { ...link, ipAddress: null } : link)),
  })),
});

function addressed(
  port: MachineRecord["interfaces"][number],
  { hostId, systemId }: MachineRecord,
): MachineRecord["interfaces"][number] {
  const number = [...(hostId ?? systemId)].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 240, 7) + 10;
  return {
    ...port,
    links: port.links.map((link) => (link.mode === "auto" ? { ...link, ipAddress: `10.40.0.${number}` } : link)),
  };
}
