import { CHASSIS_ID, type PowerShelf, type ShelfLayout } from "../devices/power-shelf.ts";
import type { PowerCommand } from "../devices/powered-device.ts";
import { readActionParameter } from "./action-body.ts";
import { type Answer, done, noContent, ok } from "./answer.ts";
import { logEntryMembers, managerResources } from "./manager-resources.ts";
import { powerSubsystemResources } from "./power-subsystem-resources.ts";
import {
  collection,
  link,
  REDFISH_POWER_STATE,
  type Resource,
  type ResourceCall,
  type ResourceTree,
} from "./resources.ts";
import { serviceMembers, serviceResources } from "./service-resources.ts";

const CHASSIS_COLLECTION = "/redfish/v1/Chassis";
const SYSTEMS = "/redfish/v1/Systems";

/** One vendor action on the chassis: its name, its one parameter, and what each value of it means. */
interface ChassisAction {
  readonly name: string;
  readonly parameter: string;
  readonly commands: Readonly<Record<string, PowerCommand>>;
}

const CHASSIS_ACTIONS: Readonly<Record<ShelfLayout, readonly ChassisAction[]>> = {
  liteon: [
    { name: "Chassis.On", parameter: "OnType", commands: { On: "on" } },
    { name: "Chassis.ForceOff", parameter: "ForceOffType", commands: { ForceOff: "off" } },
    { name: "Chassis.Reset", parameter: "ResetType", commands: { Reset: "cycle" } },
  ],
  standard: [
    {
      name: "Chassis.Reset",
      parameter: "ResetType",
      commands: {
        On: "on",
        ForceOn: "on",
        ForceOff: "off",
        GracefulShutdown: "off",
        ForceRestart: "cycle",
        GracefulRestart: "cycle",
        PowerCycle: "cycle",
      },
    },
  ],
};

export function powerShelfTree(layout: ShelfLayout): ResourceTree<PowerShelf> {
  const chassis = `${CHASSIS_COLLECTION}/${CHASSIS_ID[layout]}`;
  return {
    fixed: new Map<string, Resource<PowerShelf>>([
      ...serviceResources<PowerShelf>({ systems: layout === "liteon" }),
      [CHASSIS_COLLECTION, { GET: ({ path }) => ok(collection(path, "ChassisCollection", "Chassis", [chassis])) }],
      [chassis, { GET: (call) => ok(chassisBody(call, chassis, layout)) }],
      ...CHASSIS_ACTIONS[layout].map((action) => actionResource(chassis, action, layout)),
      ...powerSubsystemResources(chassis, layout),
      ...managerResources<PowerShelf>({ name: "Power management controller", chassis }),
      ...(layout === "liteon" ? systemResources() : []),
    ]),
    members: new Map([...serviceMembers, logEntryMembers]),
  };
}

function chassisBody(call: ResourceCall<PowerShelf>, chassis: string, layout: ShelfLayout) {
  const { spec } = call.device;
  const { reported } = call.device.read();
  return {
    "@odata.id": chassis,
    "@odata.type": "#Chassis.v1_25_0.Chassis",
    Id: CHASSIS_ID[layout],
    Name: "Power shelf",
    ChassisType: layout === "liteon" ? "Shelf" : "RackMount",
    Manufacturer: spec.vendor,
    Model: spec.model,
    SerialNumber: call.shownSerial(),
    PowerState: REDFISH_POWER_STATE[reported],
    Status: { State: "Enabled", Health: "OK" },
    Location: { Placement: { Rack: spec.rack, RackOffset: spec.slot } },
    PowerSubsystem: link(`${chassis}/PowerSubsystem`),
    Sensors: link(`${chassis}/Sensors`),
    Links: { ManagedBy: [link("/redfish/v1/Managers/bmc")] },
    Actions: Object.fromEntries(
      CHASSIS_ACTIONS[layout].map(({ name, parameter, commands }) => [
        `#${name}`,
        { target: `${chassis}/Actions/${name}`, [`${parameter}@Redfish.AllowableValues`]: Object.keys(commands) },
      ]),
    ),
  };
}

function actionResource(chassis: string, action: ChassisAction, layout: ShelfLayout): [string, Resource<PowerShelf>] {
  const POST = (call: ResourceCall<PowerShelf>): Answer => {
    const parameter = readActionParameter(call.body, action.name, action.parameter, Object.keys(action.commands));
    if ("refused" in parameter) return parameter.refused;
    const command = action.commands[parameter.value];
    if (command !== undefined) call.device.command(command, call.conduct());
    return layout === "liteon" ? done : noContent;
  };
  return [`${chassis}/Actions/${action.name}`, { POST }];
}

/** This vendor's firmware shows a computer system whose power state is wrong; clients must read the chassis. */
function systemResources(): [string, Resource<PowerShelf>][] {
  const system = `${SYSTEMS}/system`;
  return [
    [SYSTEMS, { GET: ({ path }) => ok(collection(path, "ComputerSystemCollection", "Systems", [system])) }],
    [
      system,
      {
        GET: (call) =>
          ok({
            "@odata.id": system,
            "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
            Id: "system",
            Name: "system",
            SystemType: "Physical",
            Manufacturer: call.device.spec.vendor,
            Model: call.device.spec.model,
            SerialNumber: call.shownSerial(),
            PowerState: call.device.read().reported === "on" ? "PoweringOff" : "On",
            Status: { State: "Enabled", Health: "OK" },
          }),
      },
    ],
  ];
}
