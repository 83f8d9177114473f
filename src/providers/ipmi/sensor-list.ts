import type { SensorReading } from "../../capabilities/sensors.ts";

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
