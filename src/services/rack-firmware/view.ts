import {
  type CataloguedFirmware,
  type FirmwareFile,
  whyUnavailable,
} from "../../lifecycles/rack-firmware/rack-firmware.ts";

/** A record as callers see it. */
export interface FirmwareView extends CataloguedFirmware {
  /** What it waits for, how far its download has come, or why it failed; empty where all is well. */
  readonly reason: string;
  /** Without the query of its address, which may be signed: whoever has it can fetch the file, and others beside it. */
  fileOf(digest: string): FirmwareFile | undefined;
}

export function viewFirmware(firmware: CataloguedFirmware): FirmwareView {
  const files = new Map(firmware.files.map((file) => [file.digest, { ...file, url: withoutQuery(file.url) }]));
  const { cause } = firmware.state;
  return {
    ...firmware,
    config: withoutQueries(firmware.config),
    reason:
      (firmware.unreadable && whyUnavailable(firmware)) ??
      firmware.outcome?.reason ??
      (typeof cause === "string" ? cause : ""),
    fileOf: (digest) => files.get(digest),
  };
}

const withoutQuery = (url: string): string => url.replace(/[?#].*$/s, "");

/** As it was written where it holds no query. Of what cannot be read nobody knows what it holds: it is not shown. */
function withoutQueries(config: string): string {
  let hidden = false;
  try {
    const shown: unknown = JSON.parse(config, (_key, value: unknown) => {
      if (typeof value !== "string" || !/^\s*https?:[^?#]*[?#]/i.test(value)) return value;
      hidden = true;
      return withoutQuery(value);
    });
    return hidden ? JSON.stringify(shown) : config;
  } catch {
    return "";
  }
}
