import type { SensorReading } from "../../capabilities/sensors.ts";
import type { Ailment } from "../../capabilities/vitals.ts";
import { oneLine } from "../transport/one-line.ts";

const UNITS: Readonly<Record<string, string>> = {
  "degrees C": "Cel",
  "degrees F": "[degF]",
  Volts: "V",
  Amps: "A",
  Watts: "W",
  RPM: "RPM",
  percent: "%",
};

/** What `ipmitool -c sdr list full` writes: name, number, unit, state. Sensors without a number are left out. */
export function readingsOf(text: string): readonly SensorReading[] {
  return text.split("\n").flatMap((line) => {
    const [name = "", value = "", unit = ""] = line.split(",").map((field) => field.trim());
    const number = value === "" ? Number.NaN : Number(value);
    if (name === "" || unit === "" || !Number.isFinite(number)) return [];
    return [{ name, value: number, unit: UNITS[unit] ?? unit }];
  });
}

/** Below or above a critical (cr) or non-recoverable (nr) threshold. What is only near one (nc) is no fault. */
const NOT_WELL = /^[lu]?(?:cr|nr)$/;
const LONGEST_NAME = 64;
const MOST_NAMED = 32;

/** The sensors of the same list that are out of bounds. */
export const sensorsNotWell = (text: string): readonly Ailment[] =>
  text
    .split("\n")
    .flatMap((line): Ailment[] => {
      const [name = "", , , state = ""] = line.split(",").map((field) => field.trim());
      return name !== "" && NOT_WELL.test(state) ? [{ name: oneLine(name, LONGEST_NAME), health: "critical" }] : [];
    })
    .slice(0, MOST_NAMED);
