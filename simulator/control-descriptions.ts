import type { Machine } from "./devices/machine.ts";
import type { Life, MachineState } from "./devices/machine-state.ts";
import type { ManagedDevice } from "./devices/managed-device.ts";
import type { PowerShelf } from "./devices/power-shelf.ts";
import { profileName } from "./devices/profile.ts";
import type { Switch } from "./devices/switch.ts";

export function describeShelf(shelf: PowerShelf, port: number) {
  const { kind, id, rack, slot, address, mac, serial, vendor, model, layout, supplies } = shelf.spec;
  const { power, reported, meter } = shelf.read();
  const on = power === "on" || power === "powering_off";
  return {
    id,
    kind,
    rack,
    slot,
    address,
    port,
    mac,
    serial,
    vendor,
    model,
    layout,
    firmware: shelf.firmware.ofManager,
    profile: profileName(shelf.traits),
    traits: shelf.traits,
    power,
    reported_power: reported,
    meter,
    psus: supplies.map((supply) => ({ ...supply, firmware: shelf.firmware.version("psu"), on, health: "ok" })),
  };
}

export function describeSwitch(device: Switch, port: number) {
  const { kind, id, rack, slot, trayIndex, address, mac, serial, vendor, model, nvos } = device.spec;
  const { power, reported, watts } = device.read();
  return {
    id,
    kind,
    rack,
    slot,
    tray_index: trayIndex,
    address,
    port,
    mac,
    serial,
    vendor,
    model,
    firmware: device.firmware.ofManager,
    profile: profileName(device.traits),
    traits: device.traits,
    power,
    reported_power: reported,
    meter: { input_watts: watts },
    nvos: { address: nvos.address, mac: nvos.mac, up: device.isUp },
    fabric: { cluster: device.cluster, controller: device.runsController(), ...device.fabric },
  };
}

/** What each component runs and what waits for a reset; and every update that there was, newest last. */
export const describeFirmware = ({ firmware }: ManagedDevice) => ({
  components: firmware.components.map(({ id }) => ({
    id,
    version: firmware.version(id),
    staged: firmware.staged(id)?.version ?? null,
  })),
  flashes: firmware.flashes.map((flash) => ({
    task: flash.task,
    way: flash.way,
    component: flash.component,
    from: flash.from,
    to: flash.to,
    bytes: flash.bytes,
    digest: flash.digest,
    wrote: flash.wrote,
    outcome: flash.outcome,
    percent: firmware.percentOf(flash),
    why: flash.why,
    begun_at: firmware.clockAt(flash.begunAt),
    ended_at: flash.endedAt === null ? null : firmware.clockAt(flash.endedAt),
  })),
});

export interface MachineEndpoints {
  readonly redfishPort: number;
  readonly sshPort: number;
  /** The public host key that its SSH server shows now. */
  hostKey(machine: Machine): string;
}

export function describeMachine(machine: Machine, endpoints: MachineEndpoints) {
  const { kind, id, rack, slot, address, mac, serial, vendor, model } = machine.spec;
  const { power, reported, meter } = machine.read();
  const state = machine.state;
  return {
    id,
    kind,
    rack,
    slot,
    address,
    port: endpoints.redfishPort,
    ssh_address: machine.spec.sshAddress,
    answers_at: machine.addresses,
    ssh_port: endpoints.sshPort,
    mac,
    mac_addresses: machine.spec.macs,
    serial,
    system_uuid: machine.spec.systemUuid,
    vendor,
    model,
    firmware: machine.firmware.ofManager,
    bios: machine.firmware.version("bios"),
    profile: profileName(machine.traits),
    traits: machine.traits,
    power,
    reported_power: reported,
    meter,
    locator_lit: state.locatorLit,
    boot_override: {
      enabled: state.boot.enabled,
      target: state.boot.target,
      mode: state.boot.mode,
      http_uri: state.boot.httpUri,
    },
    media: state.media?.image ?? null,
    second_medium: state.secondMedium?.image ?? null,
    os: describeSystem(state, endpoints.hostKey(machine)),
    kubernetes: {
      cluster: state.kubelet?.cluster ?? null,
      kubelet_active: state.life.is === "running" && state.kubelet?.active === true,
      joining: state.joining?.cluster ?? null,
    },
  };
}

function describeSystem(state: MachineState, hostKey: string) {
  const { life, os } = state;
  return {
    up: life.is === "running",
    doing: life.is,
    hung: life.is === "hung" ? life.why : null,
    boot_id: life.is === "running" ? state.bootId : null,
    image: os?.image ?? null,
    digest: os?.digest ?? null,
    cloud_init: os?.cloudInit ?? null,
    token: os?.token ?? null,
    source: os?.source ?? null,
    install_number: os?.number ?? null,
    host_key: os === null ? null : hostKey,
    installing: describeInstallation(life),
    network_boot:
      life.is === "network_boot"
        ? {
            running: life.kernel !== null,
            progress: life.kernel?.progress ?? null,
            cut: life.kernel?.isCut ?? false,
            screen: life.screen,
          }
        : null,
  };
}

const describeInstallation = (life: Life) =>
  life.is === "installing"
    ? { image: life.image.ref, cloud_init: life.cloudInit, token: life.token, source: life.source }
    : null;
