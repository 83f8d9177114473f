import type { SeededValues } from "../seeded-values.ts";

/** What is measured at the shelf's terminals. It knows nothing of what the management controller claims. */
export interface Meter {
  readonly output_watts: number;
  readonly output_volts: number;
  readonly input_watts: number;
  readonly temperature_celsius: number;
}

const OUTPUT_VOLTS = 50;
const STANDBY_WATTS = 38;
const EFFICIENCY = 0.975;
const ROOM_CELSIUS = 24;
const HEATING_CELSIUS = 18;
const SWAY_PERIOD_MS = 90_000;

/** A steady load of the shelf's own, swaying by a few percent, so that graphs look alive and are the same for a seed. */
export function readMeter(options: {
  readonly spec: { readonly id: string; readonly capacityWatts: number };
  readonly on: boolean;
  readonly seeded: SeededValues;
  readonly realNow: number;
}): Meter {
  const { spec, on, seeded, realNow } = options;
  if (!on) return { output_watts: 0, output_volts: 0, input_watts: STANDBY_WATTS, temperature_celsius: ROOM_CELSIUS };
  const own = seeded.fraction(`${spec.id}/load`);
  const sway = 0.03 * Math.sin((realNow / SWAY_PERIOD_MS + own) * 2 * Math.PI);
  const load = 0.45 + 0.25 * own + sway;
  const output = Math.round(spec.capacityWatts * load);
  return {
    output_watts: output,
    output_volts: Math.round((OUTPUT_VOLTS + 0.6 - load) * 100) / 100,
    input_watts: Math.round(output / EFFICIENCY + STANDBY_WATTS),
    temperature_celsius: Math.round((ROOM_CELSIUS + HEATING_CELSIUS * load) * 10) / 10,
  };
}
