import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";
import type { MaasMachine } from "./maas-machine.ts";

/** Where a MAAS region is reached. `path` is the root of MAAS there, usually `/MAAS`. */
export interface MaasTarget extends Pick<BmcTarget, "address" | "port" | "scheme" | "trust"> {
  readonly path: string;
  /** `consumer:token:secret`, as MAAS shows it. */
  readonly apiKey: string;
}

export interface MaasMachineFilter {
  readonly hostname?: string;
  readonly mac?: string;
}

/** The account of a management controller, as MAAS is to use it. */
export interface IpmiPower {
  readonly address: string;
  readonly username: string;
  readonly password: string;
}

export interface DeployOrder {
  readonly userData: string;
  /** Null: the default of MAAS. */
  readonly distroSeries: string | null;
  readonly hardwareSync: boolean;
  readonly comment: string;
}

export interface ReleaseOrder {
  readonly erase: boolean;
  readonly comment: string;
}

export interface MaasSubnet {
  readonly id: number;
  readonly cidr: string;
  readonly hasDhcp: boolean;
}

/** Somebody on a network of the region whom MAAS has no machine of. */
export interface MaasNeighbour {
  readonly mac: string;
  readonly ip: string | null;
  /** As it calls itself on the network; null: it does not. */
  readonly hostname: string | null;
  /** The maker of its port, by the MAC address. */
  readonly vendor: string | null;
  readonly lastSeenAt: Date | null;
}

export interface MaasEvent {
  readonly level: string;
  readonly type: string;
  readonly description: string;
}

/**
 * A MAAS region over its API 2.0.
 *
 * MAAS answers a command as soon as it has taken it: the status of the machine tells how it goes on. Commands return the machine as MAAS shows it then.
 *
 * @throws DeviceFailure "retry" when MAAS cannot be reached or is busy; "fail" when it refuses, with the HTTP status (409: not in this status) and its words.
 */
export interface Maas {
  /** Anonymous: says whether there is a MAAS at all. */
  readVersion(target: MaasTarget, call: CallContext): Promise<string>;
  /** The name of the user whom the key belongs to, and whether it is an administrator. */
  readUser(target: MaasTarget, call: CallContext): Promise<{ readonly name: string; readonly isAdmin: boolean }>;
  readSetting(target: MaasTarget, name: string, call: CallContext): Promise<unknown>;
  /** As `ubuntu/jammy`. */
  listImages(target: MaasTarget, call: CallContext): Promise<readonly string[]>;
  listRackControllers(target: MaasTarget, call: CallContext): Promise<readonly string[]>;
  listSubnets(target: MaasTarget, call: CallContext): Promise<readonly MaasSubnet[]>;

  /** What the rack controllers have seen on their networks and MAAS has no port of; the latest first. Empty where this MAAS does not look. */
  listNeighbours(target: MaasTarget, call: CallContext): Promise<readonly MaasNeighbour[]>;

  listMachines(target: MaasTarget, filter: MaasMachineFilter, call: CallContext): Promise<readonly MaasMachine[]>;
  /** Undefined: MAAS has no such machine. */
  findMachine(target: MaasTarget, systemId: string, call: CallContext): Promise<MaasMachine | undefined>;
  /** Not commissioned: that is a command of its own. */
  createMachine(
    target: MaasTarget,
    order: { hostname: string; power: IpmiPower },
    call: CallContext,
  ): Promise<MaasMachine>;
  /** Gives a machine that MAAS knows already its name and its management controller. */
  takeOver(
    target: MaasTarget,
    systemId: string,
    order: { hostname: string; power: IpmiPower },
    call: CallContext,
  ): Promise<MaasMachine>;
  deleteMachine(target: MaasTarget, systemId: string, call: CallContext): Promise<void>;

  commission(target: MaasTarget, systemId: string, call: CallContext): Promise<MaasMachine>;
  abort(target: MaasTarget, systemId: string, comment: string, call: CallContext): Promise<MaasMachine>;
  deploy(target: MaasTarget, systemId: string, order: DeployOrder, call: CallContext): Promise<MaasMachine>;
  release(target: MaasTarget, systemId: string, order: ReleaseOrder, call: CallContext): Promise<MaasMachine>;
  powerOn(target: MaasTarget, systemId: string, call: CallContext): Promise<void>;
  powerOff(target: MaasTarget, systemId: string, call: CallContext): Promise<void>;

  setBootDisk(target: MaasTarget, systemId: string, diskId: number, call: CallContext): Promise<void>;
  setFlatLayout(target: MaasTarget, systemId: string, diskId: number, call: CallContext): Promise<MaasMachine>;
  linkSubnet(target: MaasTarget, link: LinkOrder, call: CallContext): Promise<void>;
  unlinkSubnet(
    target: MaasTarget,
    link: Pick<LinkOrder, "systemId" | "interfaceId"> & { linkId: number },
    call: CallContext,
  ): Promise<void>;

  /** The newest first. */
  listEvents(target: MaasTarget, systemId: string, call: CallContext): Promise<readonly MaasEvent[]>;
  /** What the installer of the last deployment wrote; empty where MAAS has nothing. */
  readInstallLog(target: MaasTarget, systemId: string, call: CallContext): Promise<string>;
}

export interface LinkOrder {
  readonly systemId: string;
  readonly interfaceId: number;
  readonly subnetId: number;
  /** Given: this address. Null: one that MAAS chooses. */
  readonly ipAddress: string | null;
}
