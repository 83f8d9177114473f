import type { PowerCommand } from "../devices/powered-device.ts";
import type { Switch } from "../devices/switch.ts";
import { readActionParameter } from "./action-body.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { logEntryMembers, managerResources } from "./manager-resources.ts";
import {
  collection,
  link,
  REDFISH_POWER_STATE,
  type Resource,
  type ResourceCall,
  type ResourceTree,
} from "./resources.ts";
import { serviceMembers, serviceResources } from "./service-resources.ts";

type Call = ResourceCall<Switch>;

const CHASSIS_COLLECTION = "/redfish/v1/Chassis";
const CHASSIS = `${CHASSIS_COLLECTION}/MGX_NVSwitch_0`;
const RESET = `${CHASSIS}/Actions/Chassis.Reset`;
const SENSOR = `${CHASSIS}/Sensors/input_power`;
const RESETS: Readonly<Record<string, PowerCommand | "restart">> = {
  On: "on",
  ForceOn: "on",
  ForceOff: "off",
  GracefulShutdown: "off",
  ForceRestart: "restart",
  GracefulRestart: "restart",
  PowerCycle: "cycle",
};

/** What the management controller of a switch shows; the switch's own system answers elsewhere. */
export function switchTree(): ResourceTree<Switch> {
  return {
    fixed: new Map<string, Resource<Switch>>([
      ...serviceResources<Switch>({ systems: false }),
      [CHASSIS_COLLECTION, { GET: ({ path }) => ok(collection(path, "ChassisCollection", "Chassis", [CHASSIS])) }],
      [CHASSIS, { GET: (call) => ok(chassisBody(call)) }],
      [RESET, { POST: resetChassis }],
      [`${CHASSIS}/Sensors`, { GET: ({ path }) => ok(collection(path, "SensorCollection", "Sensors", [SENSOR])) }],
      [SENSOR, { GET: (call) => ok(sensorBody(call)) }],
      ...managerResources<Switch>({
        name: "Baseboard management controller",
        chassis: CHASSIS,
        ports: { eth1: { name: "Port of the switch's own system", of: ({ spec }) => spec.nvos } },
      }),
    ]),
    members: new Map([...serviceMembers, logEntryMembers]),
  };
}

function chassisBody(call: Call) {
  const { spec } = call.device;
  return {
    "@odata.id": CHASSIS,
    "@odata.type": "#Chassis.v1_25_0.Chassis",
    Id: "MGX_NVSwitch_0",
    Name: "Switch tray",
    ChassisType: "Module",
    Manufacturer: spec.vendor,
    Model: spec.model,
    SerialNumber: call.shownSerial(),
    PowerState: REDFISH_POWER_STATE[call.device.readPower().reported],
    Status: { State: "Enabled", Health: "OK", HealthRollup: "OK" },
    Location: { PartLocation: { LocationType: "Slot", LocationOrdinalValue: spec.slot } },
    Oem: { Nvidia: { ChassisPhysicalSlotNumber: spec.slot, TrayIndex: spec.trayIndex } },
    Sensors: link(`${CHASSIS}/Sensors`),
    Links: { ManagedBy: [link("/redfish/v1/Managers/bmc")] },
    Actions: { "#Chassis.Reset": { target: RESET, "ResetType@Redfish.AllowableValues": Object.keys(RESETS) } },
  };
}

function resetChassis(call: Call): Answer {
  const parameter = readActionParameter(call.body, "Chassis.Reset", "ResetType", Object.keys(RESETS));
  if ("refused" in parameter) return parameter.refused;
  const command = RESETS[parameter.value] ?? "on";
  if (command !== "restart") call.device.command(command, call.conduct());
  else if (!call.device.restart(call.conduct().is === "idle")) return refuse("ResourceInStandby");
  return noContent;
}

const sensorBody = ({ path, device }: Call) => ({
  "@odata.id": path,
  "@odata.type": "#Sensor.v1_9_0.Sensor",
  Id: "input_power",
  Name: "Input power",
  ReadingType: "Power",
  ReadingUnits: "W",
  Reading: device.read().watts,
  Status: { State: "Enabled", Health: "OK" },
});
