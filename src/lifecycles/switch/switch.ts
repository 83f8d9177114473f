import type { SwitchId } from "../../kernel/ids.ts";
import type { Json } from "../../kernel/lifecycle.ts";
import type { BmcDevice, BmcDeviceFacts } from "../device/bmc-device.ts";

/** What the fabric manager of a switch said last. */
export interface FabricFact {
  readonly state: "ok" | "not_ok" | "unknown";
  readonly additionInfo: string | null;
  readonly reason: string | null;
  readonly error: string | null;
  readonly at: string;
}

/** What was read from the switch itself. Every part is null until it has been. */
export interface SwitchFacts extends BmcDeviceFacts {
  /** Versions by component, such as bmc or bios. */
  readonly firmware: Readonly<Record<string, string>>;
  /** Where its own operating system is reached, as its BMC reported last. */
  readonly reportedNvosAddress: string | null;
  /** Of the certificate that it showed when the fabric was configured through it. */
  readonly nvosCertificateFingerprint: string | null;
  readonly slotNumber: number | null;
  readonly trayIndex: number | null;
  /** The fabric of the rack is configured on this switch. */
  readonly isPrimary: boolean;
  readonly fabric: FabricFact | null;
}

/** What a switch waits for while its rack is maintained. */
export const REPROVISIONING_STEPS = ["waiting_for_rack_firmware_upgrade", "waiting_for_nmxc_configure"] as const;
export type ReprovisioningStep = (typeof REPROVISIONING_STEPS)[number];

export interface Switch extends BmcDevice {
  readonly id: SwitchId;
  readonly facts: SwitchFacts;
  readonly labels: Readonly<Record<string, string | null>>;
  /** The MAC addresses of its own operating system, as the expected switch has them. */
  readonly nvosMacs: readonly string[];
  /** Where its operating system is reached, as the expected switch says; null: it does not. */
  readonly givenNvosAddress: string | null;
  /** Another switch that claims one of these addresses. */
  readonly nvosMacTakenBy: string | null;
  readonly enableNmxc: boolean;
  readonly state: {
    readonly name: string;
    readonly step?: ReprovisioningStep;
    /** The rack and the run that it waits for. */
    readonly rack?: string;
    readonly run?: string;
    readonly awaitsFabric?: boolean;
    /** Why it is in error, for people. */
    readonly cause?: string;
    /** The same for programs: its code and its facts. */
    readonly failure?: Json;
    readonly [carried: string]: Json | undefined;
  };
}

/** Where the password of its operating system is sent: only where its BMC, or else its expected switch, says that the system is. */
export const nvosAddressOf = ({
  facts,
  givenNvosAddress,
}: Pick<Switch, "givenNvosAddress"> & { readonly facts: Pick<SwitchFacts, "reportedNvosAddress"> }): string | null =>
  facts.reportedNvosAddress ?? givenNvosAddress;
