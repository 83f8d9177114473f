import type { SensorReading } from "../../../../contract/millwright/v1/power_shelf_pb.js";

/** What the shelf delivers, where its sensors say so in watts; undefined where none does. */
export function drawnWatts(sensors: readonly Pick<SensorReading, "name" | "value" | "unit">[]): number | undefined {
  const watts = sensors.filter(({ unit }) => unit === "W" || unit === "Watts");
  const total = watts.find(({ name }) => /total|output/i.test(name)) ?? watts[0];
  return total?.value;
}

export const kilowatts = (watts: number): string =>
  watts < 1_000 ? `${Math.round(watts)} W` : `${(watts / 1_000).toFixed(1)} kW`;
