import type { FirmwareState, UpdateConduct } from "../devices/firmware/firmware-state.ts";
import type { DeviceSurroundings } from "../devices/managed-device.ts";

/** What a device on the bench keeps of its firmware. */
export function firmwareMemory(conduct: Partial<UpdateConduct> = {}): DeviceSurroundings["firmware"] {
  const kept = new Map<string, string>();
  return {
    load: (id) => (kept.has(id) ? (JSON.parse(kept.get(id) ?? "") as FirmwareState) : undefined),
    save: (id, state) => void kept.set(id, JSON.stringify(state)),
    conduct: () => ({
      flash: { is: "honest" },
      acceptsWrongImage: false,
      silentAfterMs: 0,
      silentBy: null,
      ...conduct,
    }),
  };
}
