import type { Json, Thing } from "../../kernel/lifecycle.ts";
import type { Machine } from "../machine/machine.ts";
import type { Assigned } from "../rack/rack.ts";
import type { FirmwareClass, RackFirmware } from "../rack-firmware/rack-firmware.ts";

/** What somebody asked of the tray. Its id tells it from a newer one that came meanwhile. */
export type ReprovisionRequest = {
  readonly id: string;
  readonly initiator: string;
  readonly requested_at: string;
  /** Also a tray that waits for its rack is to renew its firmware by itself. */
  readonly reset?: boolean;
};

export interface HostReprovisionFacts {
  /** How often the upgrade was tried again by itself since somebody last asked for it. */
  readonly retryCount: number;
  /** When it failed last. */
  readonly reportedAt: string | null;
  /** It was tried as often as it may be. */
  readonly exhausted: boolean;
}

/** A machine, as far as its firmware is the rack's affair: whether it has what it should, and who sees to that. */
export interface HostReprovision extends Thing {
  /** Null: it is not on record any more. */
  readonly machine: Machine | null;
  readonly assigned: Assigned;
  /** What it should have: the default of its rack's hardware type. Null: it has no rack, or the rack has none. */
  readonly firmware: RackFirmware | null;
  readonly firmwareClass: FirmwareClass;
  readonly reprovisionRequest: ReprovisionRequest | null;
  readonly facts: HostReprovisionFacts;
  readonly state: {
    readonly name: string;
    /** While checking_firmware_v2: the request that it carries out, if there is one. */
    readonly request?: Json;
    /** While it works: the run that does. */
    readonly run?: string;
    /** While it waits for its rack: which. */
    readonly rack?: string;
    /** Why its upgrade failed. */
    readonly cause?: string;
    readonly failure?: Json;
    readonly [carried: string]: Json | undefined;
  };
}
