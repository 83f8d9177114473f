import type { PowerShelf, ShelfLayout } from "../devices/power-shelf.ts";
import type { Meter } from "../devices/power-shelf-meter.ts";
import { ok, refuse } from "./answer.ts";
import { collection, link, type Resource, type ResourceCall } from "./resources.ts";

interface SensorKind {
  readonly name: string;
  readonly type: string;
  readonly unit: string;
  readonly read: (meter: Meter) => number;
}

/** The sensors follow the meter, whatever the management controller claims about the power state. */
const SENSORS: Readonly<Record<string, SensorKind>> = {
  input_power: { name: "Input power", type: "Power", unit: "W", read: (meter) => meter.input_watts },
  output_power: { name: "Output power", type: "Power", unit: "W", read: (meter) => meter.output_watts },
  output_voltage: { name: "Output voltage", type: "Voltage", unit: "V", read: (meter) => meter.output_volts },
  temperature: {
    name: "Shelf temperature",
    type: "Temperature",
    unit: "Cel",
    read: (meter) => meter.temperature_celsius,
  },
};

const SUPPLIES = 6;

export function powerSubsystemResources(chassis: string, layout: ShelfLayout): [string, Resource<PowerShelf>][] {
  const subsystem = `${chassis}/PowerSubsystem`;
  const supplies = Array.from({ length: SUPPLIES }, (_, index) => `${subsystem}/PowerSupplies/ps${index}`);
  const sensors = Object.keys(SENSORS).map((id) => `${chassis}/Sensors/${id}`);
  return [
    [subsystem, { GET: (call) => ok(subsystemBody(call)) }],
    [
      `${subsystem}/PowerSupplies`,
      { GET: ({ path }) => ok(collection(path, "PowerSupplyCollection", "Power supplies", supplies)) },
    ],
    ...supplies.map((path, index): [string, Resource<PowerShelf>] => [
      path,
      { GET: (call) => supplyAnswer(call, index, layout) },
    ]),
    [`${chassis}/Sensors`, { GET: ({ path }) => ok(collection(path, "SensorCollection", "Sensors", sensors)) }],
    ...Object.entries(SENSORS).map(([id, kind]): [string, Resource<PowerShelf>] => [
      `${chassis}/Sensors/${id}`,
      { GET: (call) => ok(sensorBody(call, id, kind)) },
    ]),
  ];
}

const subsystemBody = ({ path, device: shelf }: ResourceCall<PowerShelf>) => ({
  "@odata.id": path,
  "@odata.type": "#PowerSubsystem.v1_1_0.PowerSubsystem",
  Id: "PowerSubsystem",
  Name: "Power subsystem",
  CapacityWatts: shelf.spec.capacityWatts,
  Status: { State: "Enabled", Health: "OK" },
  PowerSupplies: link(`${path}/PowerSupplies`),
});

function supplyAnswer({ path, device: shelf }: ResourceCall<PowerShelf>, index: number, layout: ShelfLayout) {
  const supply = shelf.spec.supplies[index];
  if (supply === undefined) return refuse("ResourceMissingAtURI", path);
  const { reported } = shelf.read();
  // A shelf gives power from the end of powering on until the end of powering off.
  const on = reported === "on" || reported === "powering_off";
  return ok({
    "@odata.id": path,
    "@odata.type": "#PowerSupply.v1_5_1.PowerSupply",
    Id: supply.name,
    Name: `Power supply ${index}`,
    Manufacturer: shelf.spec.vendor,
    SerialNumber: supply.serial,
    FirmwareVersion: shelf.firmware.version("psu") ?? "",
    PowerCapacityWatts: Math.round(shelf.spec.capacityWatts / shelf.spec.supplies.length),
    // One vendor adds a member of its own, a boolean; the standard says it with the state.
    ...(layout === "liteon"
      ? { PowerState: on, Status: { State: "Enabled", Health: "OK" } }
      : { Status: { State: on ? "Enabled" : "StandbyOffline", Health: "OK" } }),
  });
}

const sensorBody = ({ path, device: shelf }: ResourceCall<PowerShelf>, id: string, kind: SensorKind) => ({
  "@odata.id": path,
  "@odata.type": "#Sensor.v1_9_0.Sensor",
  Id: id,
  Name: kind.name,
  ReadingType: kind.type,
  ReadingUnits: kind.unit,
  Reading: kind.read(shelf.read().meter),
  Status: { State: "Enabled", Health: "OK" },
});
