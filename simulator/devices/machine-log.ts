import type { DeviceEvent, LogEntry } from "./managed-device.ts";

type Severity = DeviceEvent["severity"];

/** In the order of their message numbers; new ones go to the end. */
const LOG_TEXTS = {
  on_accepted: ["OK", "Reset type On was requested."],
  force_off_accepted: ["OK", "Reset type ForceOff was requested."],
  graceful_shutdown_accepted: ["OK", "Reset type GracefulShutdown was requested."],
  graceful_restart_accepted: ["OK", "Reset type GracefulRestart was requested."],
  force_restart_accepted: ["OK", "Reset type ForceRestart was requested."],
  power_cycle_accepted: ["OK", "Reset type PowerCycle was requested."],
  powered_on: ["OK", "The system was powered on."],
  powered_off: ["Warning", "The system was powered off."],
  post_started: ["OK", "The power-on self-test has started."],
  boot_from_disk: ["OK", "The system boots from its disk."],
  boot_from_media: ["OK", "The system boots from virtual media."],
  boot_from_network: ["OK", "The system boots from the network."],
  boot_from_http: ["OK", "The system boots by UEFI HTTP."],
  source_not_bootable: ["Warning", "The boot source of the override has nothing to boot; the boot order continues."],
  no_boot_device: ["Critical", "No boot device was found."],
  setup_entered: ["Warning", "The firmware setup was entered and waits for somebody."],
  os_running: ["OK", "The operating system is running."],
  os_stopping: ["OK", "The operating system is shutting down."],
  os_crashed: ["Critical", "The operating system has stopped unexpectedly."],
  install_completed: ["OK", "The installation is complete."],
  install_failed: ["Critical", "The installation has failed."],
  media_inserted: ["OK", "Virtual media was inserted."],
  media_ejected: ["OK", "Virtual media was ejected."],
  boot_override_set: ["OK", "The boot source override was changed."],
  manager_restarted: ["OK", "The management controller was restarted."],
  flash_begun: ["OK", "Firmware is being written."],
  flash_completed: ["OK", "Firmware was written."],
  flash_failed: ["Critical", "Firmware could not be written."],
} as const satisfies Readonly<Record<string, readonly [Severity, string]>>;

export type MachineLogCode = keyof typeof LOG_TEXTS;
export type MachineLogEntry = LogEntry<MachineLogCode>;

const LOG_CODES = Object.keys(LOG_TEXTS);

export function describeEntry([sequence, at, code]: MachineLogEntry): DeviceEvent {
  const [severity, message] = LOG_TEXTS[code];
  return { sequence, at, severity, messageId: `Machine.1.0.${LOG_CODES.indexOf(code) + 1}`, message };
}
