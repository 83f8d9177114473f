import type { SeededValues } from "../seeded-values.ts";
import type { MachineState } from "./machine-state.ts";

/** What is measured at the machine. It knows nothing of what the management controller claims. */
export interface MachineMeter {
  readonly input_watts: number;
  readonly inlet_celsius: number;
  readonly cpu_celsius: number;
  readonly fan_rpm: number;
}

const STANDBY_WATTS = 18;
const IDLE_WATTS = 240;
const BUSY_WATTS = 780;
const ROOM_CELSIUS = 24;
const SWAY_PERIOD_MS = 70_000;

export function readMachineMeter(options: {
  readonly id: string;
  readonly state: Pick<MachineState, "power" | "life">;
  readonly seeded: SeededValues;
  readonly realNow: number;
}): MachineMeter {
  const { id, state, seeded, realNow } = options;
  if (state.power === "off")
    return { input_watts: STANDBY_WATTS, inlet_celsius: ROOM_CELSIUS, cpu_celsius: ROOM_CELSIUS, fan_rpm: 0 };
  const own = seeded.fraction(`${id}/load`);
  const sway = 0.05 * Math.sin((realNow / SWAY_PERIOD_MS + own) * 2 * Math.PI);
  const load = state.life.is === "running" ? 0.3 + 0.4 * own + sway : 0.1;
  return {
    input_watts: Math.round(IDLE_WATTS + (BUSY_WATTS - IDLE_WATTS) * load),
    inlet_celsius: ROOM_CELSIUS + 1,
    cpu_celsius: Math.round((ROOM_CELSIUS + 14 + 40 * load) * 10) / 10,
    fan_rpm: Math.round(4_000 + 9_000 * load),
  };
}
