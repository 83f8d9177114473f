import type { CataloguedFirmware, FirmwareFile } from "../../lifecycles/rack-firmware/rack-firmware.ts";

/** A record as callers see it. */
export interface FirmwareView extends CataloguedFirmware {
  /** What it waits for, how far its download has come, or why it failed; empty where all is well. */
  readonly reason: string;
  fileOf(digest: string): FirmwareFile | undefined;
}

export function viewFirmware(firmware: CataloguedFirmware): FirmwareView {
  const files = new Map(firmware.files.map((file) => [file.digest, file]));
  const { cause } = firmware.state;
  return {
    ...firmware,
    reason: firmware.outcome?.reason ?? (typeof cause === "string" ? cause : ""),
    fileOf: (digest) => files.get(digest),
  };
}
