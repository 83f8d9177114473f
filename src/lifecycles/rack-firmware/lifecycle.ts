import { ANY, asked, defineLifecycle, GONE, on, onFailure } from "../../kernel/lifecycle.ts";
import { hours } from "../../kernel/time/duration.ts";
import type { CataloguedFirmware } from "./rack-firmware.ts";

/** A record is of use once all of its files are here whole; racks do not get what is not. */
export const rackFirmwareLifecycle = defineLifecycle<CataloguedFirmware>()({
  kind: "rack_firmware",
  initial: "downloading",

  // biome-ignore format: a table is read by its columns
  states: {
    downloading: { sla: hours(1), deadline: hours(24), doc: "Its files are being downloaded and compared with their digests." },
    available:   { rest: true, doc: "All of its files are here, and are what their digests say." },
    failed:      { rest: true, trouble: true, doc: "A file could not be downloaded, or is another one than its digest says." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from         trigger                       to
    ["downloading", on("artifacts_complete"),     "available"],
    ["downloading", onFailure("download_failed"), "failed", { carries: (_, { message, cause }) => ({ cause: message ?? "unknown", ...(cause && { failure: cause }) }) }],
    ["available",   asked("download"),            "downloading"],
    ["failed",      asked("download"),            "downloading"],
    [ANY,           asked("delete"),              GONE],
  ],
});
