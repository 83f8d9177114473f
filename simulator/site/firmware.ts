import { hash } from "node:crypto";
import { headerOf } from "../devices/firmware/firmware-image.ts";
import type { ComponentSpec, TakesEffect } from "../devices/firmware/firmware-state.ts";
import type { ManagedDeviceSpec } from "../devices/managed-device.ts";
import type { Site } from "../site.ts";
import type { RackSpec } from "./racks.ts";

const FILLER_BYTES = 65_536;

/** Versions that are newer than the delivered ones, for whoever wants to try an upgrade. */
const NEWER: Readonly<Record<string, string>> = {
  "1.09.2": "1.10.0",
  "U46-2.20": "U46-2.30",
  "88.0002.1950": "88.0002.2010",
  "0ACTV_00.01.019": "0ACTV_00.01.022",
  CPLD000370: "CPLD000371",
  "25.02.2444": "25.02.2553",
  "r1.3.9": "r1.4.0",
  "2.4.1": "2.5.0",
  "0204": "0207",
};

/** Of a machine that was left behind. */
export const OLD_BIOS = "U46-2.10";
/** The version that every component of a site has, but for those that were left behind. */
const DEFAULTS: Readonly<Record<string, string>> = { [OLD_BIOS]: "U46-2.20" };

const ACTIVATION: Readonly<Record<TakesEffect, string>> = {
  at_once: "none",
  manager_restart: "none",
  reset: "host_reset",
  power_cycle: "power_cycle",
};

/** A record of rack firmware, as the catalogue of whoever maintains the rack takes it. */
export interface FirmwareRecord {
  readonly hardware_type: string;
  readonly config: { readonly Id: string; readonly BoardSKUs: readonly unknown[] };
}

/** For each kind of rack the firmware that its devices are delivered with, and a newer one. */
export function firmwareRecords(site: Site, images: string): readonly FirmwareRecord[] {
  const types = new Map(site.racks.map((rack) => [rack.hardwareType, rack]));
  return [...types.values()].flatMap((rack) => [
    recordOf(site, rack, { id: `fw-v2.0-${rack.layout}`, images, versionOf: currentVersion }),
    recordOf(site, rack, {
      id: `fw-v2.1-${rack.layout}`,
      images,
      versionOf: (version) => NEWER[currentVersion(version)] ?? `${version}.1`,
    }),
  ]);
}

const currentVersion = (version: string): string => DEFAULTS[version] ?? version;

function recordOf(
  site: Site,
  { id: rack, hardwareType }: RackSpec,
  of: { readonly id: string; readonly images: string; readonly versionOf: (delivered: string) => string },
): FirmwareRecord {
  const first = (devices: readonly ManagedDeviceSpec[]) => devices.find((device) => device.rack === rack);
  const kinds = [
    ["Compute Node", first(site.machines)],
    ["Switch Tray", first(site.switches)],
    ["Power Shelf", first(site.shelves)],
  ] as const;
  const skus = kinds.flatMap(([type, device]) =>
    device === undefined
      ? []
      : [{ Type: type, Components: { Firmware: device.components.map((each) => firmwareOf(device.model, each, of)) } }],
  );
  return { hardware_type: hardwareType, config: { Id: of.id, BoardSKUs: skus } };
}

function firmwareOf(
  model: string,
  { id, version: delivered, takesEffect }: ComponentSpec,
  { images, versionOf }: { readonly images: string; readonly versionOf: (delivered: string) => string },
) {
  const version = versionOf(delivered);
  const name = `${model}--${id}--${version}.bin`;
  const content = imageContent(model, id, version);
  return {
    Component: id.toUpperCase(),
    Version: version,
    Activation: ACTIVATION[takesEffect],
    Target: `/redfish/v1/UpdateService/FirmwareInventory/${id}`,
    Locations: [
      {
        Location: `${images}/${name}`,
        FileName: name,
        Type: "Firmware",
        Sha256: hash("sha256", content),
        Size: content.length,
      },
    ],
  };
}

/** The image of that name: it says what it is for, and nothing else follows. */
export function imageNamed(name: string): Buffer | undefined {
  const [, model, component, version] = /^([^/ ]+?)--([^/ ]+?)--([^/ ]+)\.bin$/.exec(name) ?? [];
  if (model === undefined || component === undefined || version === undefined) return undefined;
  return imageContent(model, component, version);
}

function imageContent(model: string, component: string, version: string): Buffer {
  const header = headerOf({ model, component, version });
  return Buffer.concat([Buffer.from(header), Buffer.alloc(FILLER_BYTES, header)]);
}
