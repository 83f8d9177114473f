import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";
import type { StreamCall } from "../stream.ts";

/**
 * How a device takes an image. simple: it fetches the image from an address. multipart: it is sent the image with its parameters.
 * push: it is sent the image alone, and finds out by itself which part the image is for.
 */
export type UpdateWay = "simple" | "multipart" | "push";

/** The firmware of one part of a device, as the device shows it. */
export interface InstalledFirmware {
  /** What it is the firmware of, in one lower-case word: `bmc`, `bios`, `cpld`; the device's own id where no such word fits. */
  readonly component: string;
  /** The device's own id of it. */
  readonly id: string;
  /** Where it is, as targets of an update name it. */
  readonly path: string;
  /** Null where the device does not say, such as while it is being written. */
  readonly version: string | null;
  readonly updateable: boolean;
}

/** An update that a device was asked to fetch. */
export interface UpdateOrder {
  readonly uri: string;
  /** The parts that it is for, as `InstalledFirmware.path`; empty: the device finds out by itself. */
  readonly targets: readonly string[];
}

/** An image that is sent to a device. */
export interface ImageToSend {
  readonly name: string;
  readonly bytes: number;
  readonly targets: readonly string[];
  chunks(): AsyncIterable<Uint8Array>;
}

/** The task that a device made of an update; null where it made none that it tells of. */
export interface UpdateStarted {
  readonly task: string | null;
}

/**
 * Replacing the firmware of a device.
 *
 * Starting an update cannot be idempotent: each one that is accepted is one more flash. The caller notes versions and tasks (`DeviceTasks`)
 * before, and starts again only what is seen not to have begun. Returns once the device has accepted; a task that says that it is completed
 * proves nothing: the installed version does.
 *
 * @throws DeviceFailure "retry" when the device cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface FirmwareUpdate {
  /** `only`: of these paths alone, for those who ask again and again. */
  readInstalled(target: BmcTarget, call: CallContext, only?: readonly string[]): Promise<readonly InstalledFirmware[]>;
  /** The best way first; empty: the device takes no image. */
  readWays(target: BmcTarget, call: CallContext): Promise<readonly UpdateWay[]>;
  startUpdate(target: BmcTarget, order: UpdateOrder, call: CallContext): Promise<UpdateStarted>;
  /** Sends the image in chunks of the stream, by the best of the ways that the device has. */
  upload(target: BmcTarget, image: ImageToSend, stream: StreamCall): Promise<UpdateStarted>;
}
