import type { PowerSupply } from "../../capabilities/inventory.ts";
import type { PowerShelfId } from "../../kernel/ids.ts";
import type { Json } from "../../kernel/lifecycle.ts";
import type { BmcDevice, BmcDeviceFacts } from "../device/bmc-device.ts";

export const MAINTENANCE_OPERATIONS = ["power_on", "power_off"] as const;
export type MaintenanceOperation = (typeof MAINTENANCE_OPERATIONS)[number];

/** What an operator asked of the shelf. Its id tells it from a newer one that came meanwhile. */
export interface MaintenanceRequest {
  readonly id: string;
  readonly operation: MaintenanceOperation;
  readonly initiator: string;
  readonly requestedAt: Date;
  /** The trace of the call that asked. */
  readonly traceparent?: string | undefined;
  /** The thing that asked, such as the shelf's rack; absent where a caller did, whatever the caller's name is. */
  readonly origin?: { readonly kind: string; readonly id: string } | undefined;
  /** It is not carried out while somebody uses a tray of the shelf's rack. */
  readonly unlessInUse?: boolean | undefined;
}

export const REQUEST_OUTCOMES = ["completed", "failed", "superseded", "withdrawn"] as const;
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

export interface EndedRequest extends MaintenanceRequest {
  readonly outcome: RequestOutcome;
  readonly endedAt: Date;
  readonly message: string | null;
}

/** What was read from the shelf itself. Every part is null until it has been. */
export interface PowerShelfFacts extends BmcDeviceFacts {
  readonly capacityWatts: number | null;
  readonly voltage: number | null;
  readonly powerSupplies: readonly PowerSupply[];
  /** The last power command that the shelf accepted, and for which request. */
  readonly commandedAt: {
    readonly operation: string | null;
    readonly requestId: string | null;
    readonly at: string;
  } | null;
  /** Who wants a request ended that is being carried out. It says nothing of another request. */
  readonly cancelRequest: { readonly requestId: string; readonly by: string; readonly at: string } | null;
}

export interface PowerShelf extends BmcDevice {
  readonly id: PowerShelfId;
  readonly facts: PowerShelfFacts;
  readonly maintenanceRequest: MaintenanceRequest | null;
  /** Its BMC reports what happens to it: it is read less often. */
  readonly hasEvents: boolean;
  readonly state: {
    readonly name: string;
    readonly operation?: MaintenanceOperation;
    readonly request?: Json;
    /** Why it is in error, for people. */
    readonly cause?: string;
    /** The same for programs: its code and its facts. */
    readonly failure?: Json;
    readonly [carried: string]: Json | undefined;
  };
}
