import type { CallContext } from "../call.ts";
import type { FabricStatus } from "./fabric.ts";
import type { DeviceTask } from "./tasks.ts";

/** A device as a rack manager is told of it. */
export interface ManagedNode {
  readonly id: string;
  readonly rackId: string;
  readonly kind: "compute" | "switch" | "power_shelf";
  readonly bmc: {
    readonly address: string;
    readonly port: number;
    /** Null where it is not on record. */
    readonly mac: string | null;
    readonly username: string;
    readonly password: string;
  };
}

/** A file of firmware, by the name that the rack manager knows, and the part that it is for. */
export interface ManagedFile {
  readonly target: string;
  readonly filename: string;
}

/** A job of one device, as the device's own run knows it. */
export interface ManagedJob {
  readonly id: string;
  readonly node: string;
}

/** What a rack manager made of one device of a batch. */
export type Submitted = { readonly job: string } | { readonly error: string };

/** The place of a device in its rack, as the rack manager knows it. */
export interface ManagedPlace {
  readonly slot: number | null;
  readonly trayIndex: number | null;
}

/**
 * A service that works on all devices of a rack. What it reports is read back from the device where that is possible.
 *
 * Submitting cannot be idempotent. A second job for a device that has one is refused by the service.
 *
 * @throws DeviceFailure "retry" when the service cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface RackManager {
  /** One batch: all devices are of one kind. Every device of it is in the answer. */
  submitFirmware(
    nodes: readonly ManagedNode[],
    files: readonly ManagedFile[],
    call: CallContext,
  ): Promise<ReadonlyMap<string, Submitted>>;
  /** A job of another device is none: the answer makes no sense then. */
  readJob(job: ManagedJob, call: CallContext): Promise<DeviceTask>;
  readPlaces(nodes: readonly ManagedNode[], call: CallContext): Promise<ReadonlyMap<string, ManagedPlace>>;
  configureFabric(primary: ManagedNode, topology: string, call: CallContext): Promise<void>;
  /** Of every switch that the service tells of. */
  readFabric(nodes: readonly ManagedNode[], call: CallContext): Promise<ReadonlyMap<string, FabricStatus>>;
}
