import { vi } from "vitest";
import type { BootOverride } from "../boot-device.ts";
import type { DeviceTrouble, PowerBench } from "./device-bench.ts";

/** What a technology has no word for. The tests of it are skipped, and say so. */
export type MachineLimit =
  /** A changed time of the last reset. */
  | "tell_last_reset"
  | "tell_macs"
  /** Whether the light is lit. */
  | "tell_locator"
  /** A boot uses an override up, and what is left can be seen. */
  | "use_up_override"
  /** Of an override that is taken back nothing is left; else the disk, for good, takes its place. */
  | "boot_in_own_order"
  /** A system that is asked to go down comes up again by itself; else whoever asked switches it on. */
  | "restart_gracefully"
  | "boot_from_disk"
  /** Takes the CD drive as boot source while no medium is in it. */
  | "boot_from_empty_drive"
  | "boot_from_http"
  /** The serial number, among the vitals: it would take another request. */
  | "tell_serial_at_a_glance"
  /** Whether all of the machine is well. */
  | "tell_health"
  /** A part of the machine can be made unwell, and well again. */
  | "fall_ill"
  /** A part that is not well, and not ill enough to be critical. */
  | "tell_warnings"
  /** What reaches the device can be counted in requests. */
  | "count_requests"
  /** Watts. */
  | "measure_power"
  /** What happens at the rack is written into the log, with the time. */
  | "log_what_happens";

/** A machine on the bench: on, running, with no override set, no medium in its drive and its light dark. */
export interface MachineBench extends PowerBench {
  readonly serial: string;
  readonly systemUuid: string;
  readonly macs: readonly string[];
  readonly cannot: readonly MachineLimit[];
  /** Where an installation medium lies that the machine can boot from. */
  readonly mediumLocation: string;
  /** Restarts that it has gone through since the test began; switching it on from off is none. */
  restarts(): Promise<number>;
  /** As the machine keeps it; `lasts` may be left out where it keeps no such thing. */
  realOverride(): Promise<Pick<BootOverride, "source"> & Partial<BootOverride>>;
  realLocator(): Promise<"lit" | "dark">;
  /** What lies in its drive. */
  realMedium(): Promise<string | null>;
  /** Makes one of its parts so, null for well. Returns the part's name. Absent where it cannot `fall_ill`. */
  ail?(health: "warning" | "critical" | null): Promise<string>;
}

/** Machines take their time, at whichever speed. */
export const eventually = <T>(look: () => Promise<T>): Promise<T> =>
  vi.waitFor(look, { timeout: 30_000, interval: 20 });

/** Ends the test where this technology cannot. */
export function unless(
  { cannot }: Pick<MachineBench, "cannot">,
  limit: MachineLimit,
  { skip }: { skip(note?: string): void },
): void {
  if (cannot.includes(limit)) skip(`this technology cannot ${limit.replaceAll("_", " ")}`);
}

/** Ends the test where nothing makes a device do so. */
export function unlessMade(
  troubles: readonly DeviceTrouble[],
  trouble: DeviceTrouble,
  { skip }: { skip(note?: string): void },
): void {
  if (!troubles.includes(trouble)) skip(`nothing here makes a device that ${trouble.replaceAll("_", " ")}`);
}
