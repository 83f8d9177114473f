import type { MaasStatus } from "./statuses.ts";

export type LinkMode = "auto" | "dhcp" | "static" | "link_up";

export interface LinkRecord {
  readonly id: number;
  readonly mode: LinkMode;
  /** The id of the subnet; null for a link that is only up. */
  readonly subnet: number | null;
  readonly ipAddress: string | null;
}

export interface InterfaceRecord {
  readonly id: number;
  readonly name: string;
  readonly mac: string;
  readonly mtu: number;
  readonly tags: readonly string[];
  readonly links: readonly LinkRecord[];
}

export interface EventRecord {
  readonly id: number;
  /** Simulated time in milliseconds. */
  readonly at: number;
  readonly level: "INFO" | "WARNING" | "ERROR";
  readonly type: string;
  readonly description: string;
}

/** What MAAS remembers of a machine. */
export interface MachineRecord {
  readonly systemId: string;
  /** The server that it is; null: MAAS was given an address where nothing stands. */
  readonly hostId: string | null;
  readonly hostname: string;
  readonly description: string;
  readonly architecture: string;
  readonly status: MaasStatus;
  /** What ends by itself, in simulated time; null: nothing does. */
  readonly due: { readonly at: number; readonly to: MaasStatus; readonly why: string } | null;
  /** The status to go back to from Broken. */
  readonly previous: MaasStatus;
  readonly powerType: string;
  readonly powerParameters: Readonly<Record<string, string>>;
  readonly power: "on" | "off" | "unknown";
  readonly owner: string | null;
  readonly ownerData: Readonly<Record<string, string>>;
  readonly isLocked: boolean;
  readonly errorDescription: string;
  readonly distroSeries: string;
  readonly userData: string | null;
  readonly hardwareSync: { readonly intervalSeconds: number } | null;
  /** Simulated time. */
  readonly deployedAt: number | null;
  /** Null before the machine was commissioned. */
  readonly storage: {
    readonly bootDisk: number;
    readonly layout: string;
    readonly hasBossDisk: boolean;
  } | null;
  readonly interfaces: readonly InterfaceRecord[];
  readonly installation: { readonly ok: boolean; readonly output: string } | null;
  readonly events: readonly EventRecord[];
}
