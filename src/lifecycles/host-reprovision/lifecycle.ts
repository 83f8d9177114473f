import {
  caused,
  defineLifecycle,
  GONE,
  type Happening,
  type Json,
  type JsonObject,
  on,
  onFailure,
  STAY,
} from "../../kernel/lifecycle.ts";
import { hours } from "../../kernel/time/duration.ts";
import type { HostReprovision } from "./host-reprovision.ts";

const retry = (_: HostReprovision, { data }: Happening): JsonObject => ({
  retryCount: data?.retry ?? 0,
  exhausted: false,
});
const firstOfRack = (): JsonObject => ({ retryCount: 1, exhausted: false });
const settled = (): JsonObject => ({ retryCount: 0, exhausted: false });
const theRack = (_: HostReprovision, { data = {} }: Happening): JsonObject => ({ ...data });
/** The retry is counted in the facts. */
const theWork = (_: HostReprovision, { data = {} }: Happening): JsonObject => {
  const { request, run } = data;
  return { ...(request !== undefined && request !== null && { request }), ...(run !== undefined && { run }) };
};
/** A run tells why with its data, a handler as every handler does. */
const why = (_: HostReprovision, { message, cause, data = {} }: Happening): JsonObject => {
  const failure = cause ?? data.failure;
  return { cause: message ?? "unknown", ...(failure !== undefined && { failure }) };
};
const reportedNow = (_: HostReprovision, { data = {} }: Happening): JsonObject => ({ reportedAt: data.at ?? null });

const carried = ({ state }: HostReprovision): Json | undefined => state.request;
const pending = ({ reprovisionRequest }: HostReprovision): Json | undefined => reprovisionRequest ?? undefined;
const field = "reprovisionRequest";

const begun = { carries: theWork, sets: retry } as const;
const byRack = { carries: theRack, sets: firstOfRack } as const;
const failed = { carries: why, sets: reportedNow } as const;
const nothingToWrite = "without a record to compare with there is nothing to do, and the caller must learn that";

/**
 * The table of docs/specs/rack-maintenance.md, host reprovision. Uploading, waiting and resetting are steps of the run.
 *
 * A fresh request in failed_firmware_upgrade leads on at once: one of the rack to waiting_for_rack_firmware_upgrade, any other to
 * checking_firmware_v2 with the retries counted anew. So a tray that is stuck never keeps its rack in maintenance.
 */
export const hostReprovisionLifecycle = defineLifecycle<HostReprovision>()({
  kind: "host_reprovision",
  initial: "ready",

  // biome-ignore format: a table is read by its columns
  states: {
    ready:                             { rest: true, doc: "Nothing is wrong with its firmware, as far as anybody has checked." },
    checking_firmware_v2:              { sla: hours(2), claims: true, doc: "A run compares its firmware with the default of its rack's hardware type, and writes what differs." },
    waiting_for_rack_firmware_upgrade: { sla: hours(4), doc: "Its rack renews its firmware." },
    failed_firmware_upgrade:           { rest: true, trouble: true, doc: "Its firmware could not be renewed. It is tried again after a while, a few times; a request leads out at once." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from                             trigger                        to
    ["ready",                             caused("rack_requested"),    "waiting_for_rack_firmware_upgrade", byRack],
    ["ready",                             on("own_upgrade_begun"),     "checking_firmware_v2", begun],
    ["ready",                             on("upgrade_skipped"),       STAY, { clears: [{ field, carried: pending }], added: nothingToWrite }],
    ["ready",                             caused("expired"),           GONE, { added: "its machine is forgotten: only a boot had put that on record" }],
    ["checking_firmware_v2",              caused("firmware_proven"),   "ready", { clears: [{ field, carried }], sets: settled }],
    ["checking_firmware_v2",              caused("firmware_failed"),   "failed_firmware_upgrade", { ...failed, clears: [{ field, carried, outcome: "failed" }] }],
    ["checking_firmware_v2",              onFailure("run_lost"),       "failed_firmware_upgrade", { ...failed, clears: [{ field, carried }], added: "a run that is gone would be waited for for ever" }],
    ["waiting_for_rack_firmware_upgrade", caused("firmware_proven"),   "ready", { sets: settled }],
    ["waiting_for_rack_firmware_upgrade", caused("firmware_failed"),   "failed_firmware_upgrade", failed],
    ["waiting_for_rack_firmware_upgrade", caused("rack_ended"),        "ready"],
    ["waiting_for_rack_firmware_upgrade", on("own_upgrade_begun"),     "checking_firmware_v2", begun],
    ["failed_firmware_upgrade",           caused("rack_requested"),    "waiting_for_rack_firmware_upgrade", byRack],
    ["failed_firmware_upgrade",           caused("firmware_proven"),   "ready", { sets: settled, added: "its rack has written it after all" }],
    ["failed_firmware_upgrade",           on("own_upgrade_begun"),     "checking_firmware_v2", begun],
    ["failed_firmware_upgrade",           on("upgrade_skipped"),       STAY, { clears: [{ field, carried: pending }], added: nothingToWrite }],
    ["failed_firmware_upgrade",           on("retries_exhausted"),     STAY, { sets: () => ({ exhausted: true }), added: "its rack goes to error by it" }],
  ],
});
