/** The words for a machine's status upstream. `Transient`: it moves by itself. `Other`: nothing that onboarding may build on. */
export type ObservedMaasState =
  | "New"
  | "Commissioning"
  | "Ready"
  | "Allocated"
  | "Deploying"
  | "Deployed"
  | "Failed deployment"
  | "Failed"
  | "Broken"
  | "absent"
  | "Transient"
  | "Other";

/** By number: names differ between versions of MAAS, and one of them is spelled unlike all others. */
// biome-ignore format: a table is read by its columns
const OBSERVED: ReadonlyMap<number, ObservedMaasState> = new Map([
  [0, "New"], [1, "Commissioning"], [21, "Commissioning"], [4, "Ready"], [10, "Allocated"], [5, "Allocated"],
  [9, "Deploying"], [6, "Deployed"], [11, "Failed deployment"], [8, "Broken"], [12, "Transient"], [14, "Transient"],
  [2, "Failed"], [13, "Failed"], [15, "Failed"], [18, "Failed"], [20, "Failed"], [22, "Failed"],
]);

/** Statuses that this version does not know may be anything. */
export const observedStateOf = (machine: Pick<MaasMachine, "status"> | undefined): ObservedMaasState =>
  machine === undefined ? "absent" : (OBSERVED.get(machine.status) ?? "Other");

export interface MaasLink {
  readonly id: number;
  readonly mode: string;
  readonly subnetId: number | null;
  readonly ipAddress: string | null;
}

export interface MaasInterface {
  readonly id: number;
  readonly name: string;
  readonly mac: string | null;
  readonly links: readonly MaasLink[];
}

export interface MaasDisk {
  readonly id: number;
  readonly name: string;
  readonly model: string | null;
  readonly serial: string | null;
  readonly bytes: number;
}

/** What MAAS says of a machine. Null: MAAS does not say. */
export interface MaasMachine {
  readonly systemId: string;
  readonly hostname: string;
  readonly status: number;
  readonly statusName: string;
  readonly power: "on" | "off" | "unknown";
  readonly powerType: string | null;
  readonly owner: string | null;
  readonly distroSeries: string | null;
  readonly isLocked: boolean;
  readonly errorDescription: string | null;
  readonly serial: string | null;
  readonly systemUuid: string | null;
  readonly ipAddresses: readonly string[];
  readonly interfaces: readonly MaasInterface[];
  readonly bootInterfaceId: number | null;
  readonly disks: readonly MaasDisk[];
  readonly bootDiskId: number | null;
  readonly hardwareSync: { readonly intervalSeconds: number | null; readonly lastSyncAt: Date | null } | null;
}
