import type { ComponentSpec } from "../../simulator/devices/firmware/firmware-state.ts";
import type { ManagedDeviceSpec } from "../../simulator/devices/managed-device.ts";
import type { BmcTarget } from "../../src/capabilities/bmc-target.ts";
import type { CallContext } from "../../src/capabilities/call.ts";
import type { PowerState } from "../../src/capabilities/power-control.ts";
import type { Capabilities } from "../../src/capabilities/provider.ts";
import type { InstalledFirmware } from "../../src/capabilities/rack/firmware.ts";
import { milliseconds } from "../../src/kernel/time/duration.ts";

const ON_TIME = milliseconds(1_000);

/** A device of a site that answers and obeys at once. */
export class InstantDevice<S extends ManagedDeviceSpec = ManagedDeviceSpec> {
  readonly spec: S;
  power: PowerState = "on";
  readonly versions: Map<string, string>;
  readonly tasks: string[] = [];

  constructor(spec: S) {
    this.spec = spec;
    this.versions = new Map(spec.components.map(({ id, version }) => [id, version]));
  }
}

/** What reached devices. */
export interface Commands {
  /** Called with the id of each device that is commanded. */
  onCommand(deviceId: string, command: "power" | "flash" | "reset" | "fabric"): void;
}

/** Looks up the device at an address; the lease is asked as before each real request. */
export type Reach<S extends ManagedDeviceSpec> = (
  target: Pick<BmcTarget, "address">,
  call: CallContext,
) => InstantDevice<S>;

export function reachOf<S extends ManagedDeviceSpec>(specs: readonly S[]): Reach<S> {
  const devices = new Map(specs.map((spec) => [spec.address, new InstantDevice(spec)]));
  return ({ address }, call) => {
    call.mayTouchDevice(ON_TIME);
    const device = devices.get(address);
    if (device === undefined) throw new Error(`there is no device at ${address}`);
    return device;
  };
}

type OfEveryDevice = Pick<Capabilities, "power" | "firmware" | "tasks" | "manager" | "reset">;

const INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory";

/** What all devices with a BMC can be asked. */
export function bmcOf<S extends ManagedDeviceSpec>(reach: Reach<S>, commands: Commands): OfEveryDevice {
  return {
    power: {
      readPower: async (target, call) => reach(target, call).power,
      async setPower(target, desired, call) {
        const device = reach(target, call);
        if (device.power === desired) return { commanded: false };
        commands.onCommand(device.spec.id, "power");
        device.power = desired;
        return { commanded: true };
      },
    },
    reset: {
      async resetPower(target, _mode, call) {
        const device = reach(target, call);
        commands.onCommand(device.spec.id, "reset");
        device.power = "on";
      },
    },
    firmware: {
      async readInstalled(target, call, only) {
        const device = reach(target, call);
        const all = device.spec.components.map((component) => installed(device, component));
        return only === undefined ? all : all.filter(({ path }) => only.includes(path));
      },
      readWays: async () => ["multipart"],
      startUpdate: () => Promise.reject(new Error("instant devices are sent their images")),
      async upload(target, image, stream) {
        const device = reach(target, stream);
        for await (const _ of image.chunks()) await stream.sendChunk(async () => undefined);
        commands.onCommand(device.spec.id, "flash");
        const [component, version] = componentIn(image.name);
        device.versions.set(component, version);
        device.tasks.push(`task-${device.tasks.length + 1}`);
        return { task: device.tasks.at(-1) ?? null };
      },
    },
    tasks: {
      listTasks: async (target, call) => [...reach(target, call).tasks],
      readTask: async (_target, id) => ({ id, state: "completed", percent: 100, message: "", targets: [] }),
    },
    manager: {
      readRoot: async (target, call) => ({ uuid: reach(target, call).spec.uuid }),
      readStart: async () => "2026-01-01T00:00:00Z",
      async resetManager(target, call) {
        commands.onCommand(reach(target, call).spec.id, "reset");
      },
      expectRestart() {},
    },
  };
}

const installed = (device: InstantDevice, { id }: ComponentSpec): InstalledFirmware => ({
  component: id,
  id,
  path: `${INVENTORY}/${id}`,
  version: device.versions.get(id) ?? null,
  updateable: true,
});

/** Images are named after model, component and version. */
function componentIn(name: string): readonly [string, string] {
  const [, component, version] = /^.+?--(.+?)--(.+)\.bin$/.exec(name) ?? [];
  if (component === undefined || version === undefined) throw new Error(`${name} is no image of the site`);
  return [component, version];
}
