/** Kinds of steps by which a run replaces the firmware of its target: by itself, or by the job of a rack manager that it follows. */
export const WRITES_FIRMWARE: ReadonlySet<string> = new Set(["update_firmware", "follow_firmware_job"]);
