import { z } from "zod";
import type { Machine } from "../devices/machine.ts";
import {
  BOOT_MODES,
  BOOT_OVERRIDES,
  BOOT_TARGETS,
  type BootOverride,
  type Life,
  RESET_TYPES,
} from "../devices/machine-state.ts";
import { readActionParameter } from "./action-body.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { readBodyOf } from "./patch-body.ts";
import { collection, link, REDFISH_POWER_STATE, type Resource, type ResourceCall } from "./resources.ts";

const SYSTEMS = "/redfish/v1/Systems";
export const SYSTEM = `${SYSTEMS}/1`;
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
const ETHERNET = `${SYSTEM}/EthernetInterfaces`;
const PORTS = 2;

type Call = ResourceCall<Machine>;

const patchSchema = z.strictObject({
  Boot: z
    .strictObject({
      BootSourceOverrideEnabled: z.enum(BOOT_OVERRIDES).optional(),
      BootSourceOverrideTarget: z.enum(BOOT_TARGETS).optional(),
      BootSourceOverrideMode: z.enum(BOOT_MODES).optional(),
      HttpBootUri: z.string().max(1_000).nullable().optional(),
    })
    .optional(),
  LocationIndicatorActive: z.boolean().optional(),
  IndicatorLED: z.enum(["Lit", "Blinking", "Off"]).optional(),
});

export function systemResources(chassis: string): [string, Resource<Machine>][] {
  const ports = Array.from({ length: PORTS }, (_, index) => `${ETHERNET}/eth${index}`);
  return [
    [SYSTEMS, { GET: ({ path }) => ok(collection(path, "ComputerSystemCollection", "Systems", [SYSTEM])) }],
    [SYSTEM, { GET: (call) => ok(systemBody(call, chassis)), PATCH: patchSystem }],
    [RESET, { POST: resetSystem }],
    [ETHERNET, { GET: ({ path }) => ok(collection(path, "EthernetInterfaceCollection", "Network interfaces", ports)) }],
    ...ports.map((path, index): [string, Resource<Machine>] => [path, { GET: (call) => portBody(call, index) }]),
  ];
}

function systemBody(call: Call, chassis: string) {
  const { spec } = call.device;
  const state = call.device.state;
  return {
    "@odata.id": SYSTEM,
    "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
    Id: "1",
    Name: spec.id,
    HostName: state.life.is === "running" ? spec.id : "",
    SystemType: "Physical",
    Manufacturer: spec.vendor,
    Model: spec.model,
    SerialNumber: call.shownSerial(),
    UUID: spec.systemUuid,
    BiosVersion: spec.biosVersion,
    PowerState: REDFISH_POWER_STATE[call.device.read().reported],
    LastResetTime: new Date(state.lastResetTime).toISOString(),
    BootProgress: { LastState: bootProgress(state.life) },
    ProcessorSummary: { Count: 2, CoreCount: 96, Model: "Generic x86-64", Status: { State: "Enabled", Health: "OK" } },
    MemorySummary: { TotalSystemMemoryGiB: 768, Status: { State: "Enabled", Health: "OK" } },
    LocationIndicatorActive: state.locatorLit,
    IndicatorLED: state.locatorLit ? "Blinking" : "Off",
    Status: {
      State: state.power === "on" ? "Enabled" : "Disabled",
      Health: state.life.is === "hung" ? "Warning" : "OK",
    },
    Boot: bootBody(state.boot),
    EthernetInterfaces: link(ETHERNET),
    Links: { Chassis: [link(chassis)], ManagedBy: [link("/redfish/v1/Managers/bmc")] },
    Actions: {
      "#ComputerSystem.Reset": { target: RESET, "ResetType@Redfish.AllowableValues": RESET_TYPES },
    },
  };
}

const bootBody = ({ enabled, target, mode, httpUri }: BootOverride) => ({
  BootSourceOverrideEnabled: enabled,
  BootSourceOverrideTarget: target,
  BootSourceOverrideMode: mode,
  "BootSourceOverrideTarget@Redfish.AllowableValues": BOOT_TARGETS,
  "BootSourceOverrideEnabled@Redfish.AllowableValues": BOOT_OVERRIDES,
  HttpBootUri: httpUri,
});

/** All that a management controller gets to know of what runs on the machine. */
function bootProgress(life: Life): string {
  switch (life.is) {
    case "off":
      return "None";
    case "post":
      return "SystemHardwareInitializationComplete";
    case "booting":
    case "installing":
      return "OSBootStarted";
    case "running":
    case "shutting_down":
      return "OSRunning";
    case "hung":
      return {
        no_boot_device: "None",
        firmware_setup: "SetupEntered",
        kernel_panic: "OSRunning",
        install_failed: "OSBootStarted",
      }[life.why];
  }
}

function patchSystem({ device, body }: Call): Answer {
  const read = readBodyOf(patchSchema, body);
  if ("refused" in read) return read.refused;
  const { Boot, LocationIndicatorActive, IndicatorLED } = read.value;
  if (Boot !== undefined) {
    const before = device.state.boot;
    const boot: BootOverride = {
      enabled: Boot.BootSourceOverrideEnabled ?? before.enabled,
      target: Boot.BootSourceOverrideTarget ?? before.target,
      mode: Boot.BootSourceOverrideMode ?? before.mode,
      httpUri: Boot.HttpBootUri === undefined ? before.httpUri : Boot.HttpBootUri,
    };
    if (boot.target === "UefiHttp" && (boot.httpUri === null || boot.mode !== "UEFI"))
      return refuse(
        "PropertyValueConflict",
        "Boot/BootSourceOverrideTarget",
        boot.httpUri === null ? "Boot/HttpBootUri" : "Boot/BootSourceOverrideMode",
      );
    device.setBoot(boot);
  }
  if (LocationIndicatorActive !== undefined) device.setLocator(LocationIndicatorActive);
  else if (IndicatorLED !== undefined) device.setLocator(IndicatorLED !== "Off");
  return noContent;
}

function resetSystem(call: Call): Answer {
  const parameter = readActionParameter(call.body, "ComputerSystem.Reset", "ResetType", RESET_TYPES);
  if ("refused" in parameter) return parameter.refused;
  return call.device.reset(parameter.value, call.conduct()) ? noContent : refuse("ResourceInStandby");
}

function portBody({ device, path }: Call, index: number): Answer {
  const mac = device.spec.macs[index];
  if (mac === undefined) return refuse("ResourceMissingAtURI", path);
  return ok({
    "@odata.id": path,
    "@odata.type": "#EthernetInterface.v1_10_0.EthernetInterface",
    Id: `eth${index}`,
    Name: `Network port ${index}`,
    InterfaceEnabled: true,
    LinkStatus: device.state.power === "on" ? "LinkUp" : "LinkDown",
    SpeedMbps: 100_000,
    MACAddress: mac,
    PermanentMACAddress: mac,
    Status: { State: "Enabled", Health: "OK" },
  });
}
