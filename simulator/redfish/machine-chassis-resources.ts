import { z } from "zod";
import type { Machine } from "../devices/machine.ts";
import type { MachineMeter } from "../devices/machine-meter.ts";
import type { SensorId } from "../devices/machine-state.ts";
import { type Answer, noContent, ok } from "./answer.ts";
import { readBodyOf } from "./patch-body.ts";
import { collection, link, REDFISH_POWER_STATE, type Resource, type ResourceCall } from "./resources.ts";
import { rollup } from "./system-part-resources.ts";

type Call = ResourceCall<Machine>;

const CHASSIS_COLLECTION = "/redfish/v1/Chassis";
const patchSchema = z.strictObject({ LocationIndicatorActive: z.boolean().optional() });

/** The sensors follow the meter, whatever the management controller claims about the power state. */
const SENSORS: Readonly<
  Record<SensorId, { name: string; type: string; unit: string; read: (meter: MachineMeter) => number }>
> = {
  input_power: { name: "Input power", type: "Power", unit: "W", read: (meter) => meter.input_watts },
  inlet_temperature: {
    name: "Inlet temperature",
    type: "Temperature",
    unit: "Cel",
    read: (meter) => meter.inlet_celsius,
  },
  cpu_temperature: { name: "CPU temperature", type: "Temperature", unit: "Cel", read: (meter) => meter.cpu_celsius },
  fan_speed: { name: "Fan speed", type: "Rotational", unit: "{rev}/min", read: (meter) => meter.fan_rpm },
};

/** The case: where it stands, what it draws, how warm it is; in the present form and in the one that older clients read. */
export function machineChassisResources(chassis: string, system: string): [string, Resource<Machine>][] {
  const sensors = Object.keys(SENSORS).map((id) => `${chassis}/Sensors/${id}`);
  return [
    [CHASSIS_COLLECTION, { GET: ({ path }) => ok(collection(path, "ChassisCollection", "Chassis", [chassis])) }],
    [chassis, { GET: (call) => ok(chassisBody(call, chassis, system)), PATCH: patchChassis }],
    [`${chassis}/Power`, { GET: (call) => ok(powerBody(call)) }],
    [`${chassis}/Thermal`, { GET: (call) => ok(thermalBody(call)) }],
    [`${chassis}/Sensors`, { GET: ({ path }) => ok(collection(path, "SensorCollection", "Sensors", sensors)) }],
    ...Object.entries(SENSORS).map(([id, sensor]): [string, Resource<Machine>] => [
      `${chassis}/Sensors/${id}`,
      {
        GET: ({ path, device }) =>
          ok({
            "@odata.id": path,
            "@odata.type": "#Sensor.v1_9_0.Sensor",
            Id: id,
            Name: sensor.name,
            ReadingType: sensor.type,
            ReadingUnits: sensor.unit,
            Reading: sensor.read(device.read().meter),
            Status: { State: "Enabled", Health: device.state.ailments?.[id as SensorId] ?? "OK" },
          }),
      },
    ]),
  ];
}

function chassisBody(call: Call, chassis: string, system: string) {
  const { spec, state } = call.device;
  return {
    "@odata.id": chassis,
    "@odata.type": "#Chassis.v1_25_0.Chassis",
    Id: "1",
    Name: "Machine",
    ChassisType: "RackMount",
    Manufacturer: spec.vendor,
    Model: spec.model,
    SerialNumber: call.shownSerial(),
    PowerState: REDFISH_POWER_STATE[call.device.read().reported],
    LocationIndicatorActive: state.locatorLit,
    Location: { Placement: { Rack: spec.rack, RackOffset: spec.slot } },
    Status: {
      State: "Enabled",
      Health: "OK",
      ...(call.device.has("no_health_rollup") ? {} : { HealthRollup: rollup(state.ailments) }),
    },
    Power: link(`${chassis}/Power`),
    Thermal: link(`${chassis}/Thermal`),
    Sensors: link(`${chassis}/Sensors`),
    Links: { ComputerSystems: [link(system)], ManagedBy: [link("/redfish/v1/Managers/bmc")] },
  };
}

function patchChassis({ device, body }: Call): Answer {
  const read = readBodyOf(patchSchema, body);
  if ("refused" in read) return read.refused;
  if (read.value.LocationIndicatorActive !== undefined) device.setLocator(read.value.LocationIndicatorActive);
  return noContent;
}

const powerBody = ({ path, device }: Call) => ({
  "@odata.id": path,
  "@odata.type": "#Power.v1_7_1.Power",
  Id: "Power",
  Name: "Power",
  PowerControl: [
    {
      MemberId: "0",
      Name: "System power",
      PowerConsumedWatts: device.read().meter.input_watts,
      PowerCapacityWatts: 1_600,
    },
  ],
});

function thermalBody({ path, device }: Call) {
  const { inlet_celsius, cpu_celsius, fan_rpm } = device.read().meter;
  const Status = { State: "Enabled", Health: "OK" };
  return {
    "@odata.id": path,
    "@odata.type": "#Thermal.v1_7_1.Thermal",
    Id: "Thermal",
    Name: "Thermal",
    Temperatures: [
      { MemberId: "0", Name: "Inlet", ReadingCelsius: inlet_celsius, PhysicalContext: "Intake", Status },
      { MemberId: "1", Name: "CPU", ReadingCelsius: cpu_celsius, PhysicalContext: "CPU", Status },
    ],
    Fans: [{ MemberId: "0", Name: "Fan 0", Reading: fan_rpm, ReadingUnits: "RPM", Status }],
  };
}
