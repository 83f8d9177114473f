import { z } from "zod";
import type { Machine } from "../devices/machine.ts";
import {
  BOOT_MODES,
  BOOT_OVERRIDES,
  BOOT_TARGETS,
  type BootOverride,
  type Life,
  type MachineState,
  RESET_TYPES,
} from "../devices/machine-state.ts";
import { readActionParameter } from "./action-body.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { readBodyOf } from "./patch-body.ts";
import { collection, link, REDFISH_POWER_STATE, type Resource, type ResourceCall } from "./resources.ts";
import { partLinks, rollup, systemPartResources } from "./system-part-resources.ts";

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
    ...systemPartResources(SYSTEM),
    ...ports.map((path, index): [string, Resource<Machine>] => [path, { GET: (call) => portBody(call, index) }]),
  ];
}

function systemBody(call: Call, chassis: string) {
  const { device } = call;
  const { spec, state } = device;
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
    BiosVersion: device.firmware.version("bios") ?? "",
    PowerState: REDFISH_POWER_STATE[device.read().reported],
    ...(device.has("no_last_reset_time") ? {} : { LastResetTime: new Date(state.lastResetTime).toISOString() }),
    ...(device.has("no_boot_progress") ? {} : { BootProgress: { LastState: bootProgress(state.life) } }),
    ProcessorSummary: { Count: 2, CoreCount: 96, Model: "Generic x86-64", Status: { State: "Enabled", Health: "OK" } },
    MemorySummary: { TotalSystemMemoryGiB: 768, Status: { State: "Enabled", Health: "OK" } },
    LocationIndicatorActive: state.locatorLit,
    IndicatorLED: state.locatorLit ? (state.locatorShows ?? "Blinking") : "Off",
    Status: {
      State: state.power === "on" ? "Enabled" : "Disabled",
      Health: healthOf(state),
      ...(device.has("no_health_rollup") ? {} : { HealthRollup: sumOf(state) }),
    },
    Boot: bootBody(device),
    EthernetInterfaces: link(ETHERNET),
    ...partLinks(SYSTEM),
    Links: { Chassis: [link(chassis)], ManagedBy: [link("/redfish/v1/Managers/bmc")] },
    Actions: {
      "#ComputerSystem.Reset": {
        target: RESET,
        ...(device.has("unknown_resets_accepted") ? {} : { "ResetType@Redfish.AllowableValues": RESET_TYPES }),
      },
    },
  };
}

const healthOf = ({ life }: MachineState) => (life.is === "hung" ? "Warning" : "OK");

/** Its own health and that of its parts, the worse. */
const sumOf = (state: MachineState): string => {
  const parts = rollup(state.ailments);
  return parts === "OK" ? healthOf(state) : parts;
};

function bootBody(device: Machine) {
  const { enabled, target, mode, httpUri } = shownOverride(device);
  return {
    BootSourceOverrideEnabled: enabled,
    BootSourceOverrideTarget: target,
    BootSourceOverrideMode: mode,
    "BootSourceOverrideTarget@Redfish.AllowableValues": targetsOf(device),
    "BootSourceOverrideEnabled@Redfish.AllowableValues": BOOT_OVERRIDES,
    HttpBootUri: httpUri,
  };
}

/** A controller that keeps every override for good has none to show that means "as usual": it names the disk. */
const shownOverride = (device: Machine): BootOverride =>
  device.has("once_kept_as_continuous") && device.state.boot.enabled !== "Continuous"
    ? { ...device.state.boot, enabled: "Continuous", target: "Hdd" }
    : device.state.boot;

const targetsOf = (device: Machine): readonly BootOverride["target"][] =>
  device.has("once_kept_as_continuous") ? BOOT_TARGETS.filter((target) => target !== "None") : BOOT_TARGETS;

/** All that a management controller gets to know of what runs on the machine. */
function bootProgress(life: Life): string {
  switch (life.is) {
    case "off":
      return "None";
    case "post":
      return "SystemHardwareInitializationComplete";
    case "booting":
    case "installing":
    case "network_boot":
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
        post: "MemoryInitializationStarted",
      }[life.why];
  }
}

function patchSystem({ device, body }: Call): Answer {
  const read = readBodyOf(patchSchema, body);
  if ("refused" in read) return read.refused;
  const { Boot, LocationIndicatorActive, IndicatorLED } = read.value;
  const refused = Boot === undefined ? undefined : patchBoot(device, Boot);
  if (refused !== undefined) return refused;
  if (LocationIndicatorActive !== undefined) device.setLocator(LocationIndicatorActive);
  else if (IndicatorLED !== undefined)
    device.setLocator(IndicatorLED !== "Off", IndicatorLED === "Off" ? undefined : IndicatorLED);
  return noContent;
}

/** Undefined: it was set. */
function patchBoot(device: Machine, asked: NonNullable<z.infer<typeof patchSchema>["Boot"]>): Answer | undefined {
  const before = shownOverride(device);
  const { BootSourceOverrideEnabled: enabled, BootSourceOverrideTarget: target } = asked;
  if (device.has("lone_disabled_refused") && enabled !== undefined && target === undefined)
    return refuse("PropertyMissing", "Boot/BootSourceOverrideTarget");
  if (target !== undefined && !targetsOf(device).includes(target))
    return refuse("PropertyValueNotInList", "Boot/BootSourceOverrideTarget", targetsOf(device).join(", "));
  if (device.has("missing_device_fails") && (target === "Usb" || (target === "Cd" && device.state.media === null)))
    return refuse("GeneralError", `Boot device ${target} is not present in the system.`);
  const boot: BootOverride = {
    enabled: device.has("once_kept_as_continuous") ? "Continuous" : (enabled ?? before.enabled),
    target: target ?? before.target,
    mode: asked.BootSourceOverrideMode ?? before.mode,
    httpUri: asked.HttpBootUri === undefined ? before.httpUri : asked.HttpBootUri,
  };
  if (boot.target === "UefiHttp" && (boot.httpUri === null || boot.mode !== "UEFI"))
    return refuse(
      "PropertyValueConflict",
      "Boot/BootSourceOverrideTarget",
      boot.httpUri === null ? "Boot/HttpBootUri" : "Boot/BootSourceOverrideMode",
    );
  device.setBoot(boot);
  return undefined;
}

function resetSystem(call: Call): Answer {
  const parameter = readActionParameter(call.body, "ComputerSystem.Reset", "ResetType", RESET_TYPES);
  if ("refused" in parameter) {
    const word = (call.body as { ResetType?: unknown } | undefined)?.ResetType;
    return typeof word === "string" && call.device.has("unknown_resets_accepted") ? noContent : parameter.refused;
  }
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
