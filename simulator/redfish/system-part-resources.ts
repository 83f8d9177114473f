import type { Machine } from "../devices/machine.ts";
import type { Ailments, PartId } from "../devices/machine-state.ts";
import { ok } from "./answer.ts";
import { collection, link, type Resource, type ResourceCall } from "./resources.ts";

type Call = ResourceCall<Machine>;

const PROCESSORS = 2;
const DRIVES = 2;

/** The worst of all that is not well, as a sum of it. */
export function rollup(ailments: Ailments = {}): string {
  const all = Object.values(ailments);
  return all.includes("Critical") ? "Critical" : (all[0] ?? "OK");
}

export const partLinks = (system: string) => ({
  Processors: link(`${system}/Processors`),
  Storage: link(`${system}/Storage`),
  Bios: link(`${system}/Bios`),
  SecureBoot: link(`${system}/SecureBoot`),
});

/** What a computer system is made of. It can be read; nothing of it can be set. */
export function systemPartResources(system: string): [string, Resource<Machine>][] {
  const storage = `${system}/Storage/1`;
  const numbered = (path: string, name: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${path}/${name}${index}`);
  const processors = numbered(`${system}/Processors`, "cpu", PROCESSORS);
  const drives = numbered(`${storage}/Drives`, "disk", DRIVES);
  return [
    [
      `${system}/Processors`,
      { GET: ({ path }) => ok(collection(path, "ProcessorCollection", "Processors", processors)) },
    ],
    ...processors.map((path, index): [string, Resource<Machine>] => [
      path,
      { GET: (call) => ok(processor(call, index)) },
    ]),
    [`${system}/Storage`, { GET: ({ path }) => ok(collection(path, "StorageCollection", "Storage", [storage])) }],
    [storage, { GET: (call) => ok(storageBody(call, drives)) }],
    [`${storage}/Volumes`, { GET: ({ path }) => ok(collection(path, "VolumeCollection", "Volumes", [])) }],
    ...drives.map((path, index): [string, Resource<Machine>] => [path, { GET: (call) => ok(drive(call, index)) }]),
    [`${system}/Bios`, { GET: (call) => ok(bios(call)) }],
    [`${system}/SecureBoot`, { GET: (call) => ok(secureBoot(call)) }],
  ];
}

const statusOf = (device: Machine, part: string) => ({
  State: "Enabled",
  Health: device.state.ailments?.[part as PartId] ?? "OK",
});

const processor = ({ path, device }: Call, index: number) => ({
  "@odata.id": path,
  "@odata.type": "#Processor.v1_18_0.Processor",
  Id: `cpu${index}`,
  Name: `Processor ${index}`,
  Socket: `CPU${index}`,
  ProcessorType: "CPU",
  ProcessorArchitecture: "x86",
  InstructionSet: "x86-64",
  Manufacturer: "Generic",
  Model: "Generic x86-64",
  TotalCores: 48,
  TotalThreads: 96,
  Status: statusOf(device, `processor_${index}`),
});

const storageBody = ({ path, device }: Call, drives: readonly string[]) => ({
  "@odata.id": path,
  "@odata.type": "#Storage.v1_15_0.Storage",
  Id: "1",
  Name: "Local storage",
  Drives: drives.map(link),
  Volumes: link(`${path}/Volumes`),
  Status: {
    State: "Enabled",
    Health: "OK",
    ...(device.has("no_health_rollup") ? {} : { HealthRollup: rollup(only(device.state.ailments, "drive_")) }),
  },
});

const only = (ailments: Ailments = {}, prefix: string): Ailments =>
  Object.fromEntries(Object.entries(ailments).filter(([id]) => id.startsWith(prefix)));

const drive = ({ path, device }: Call, index: number) => ({
  "@odata.id": path,
  "@odata.type": "#Drive.v1_17_0.Drive",
  Id: `disk${index}`,
  Name: `Drive ${index}`,
  Model: "Generic NVMe",
  SerialNumber: `${device.spec.serial}-D${index}`,
  Protocol: "NVMe",
  MediaType: "SSD",
  CapacityBytes: 1_920_383_410_176,
  Status: statusOf(device, `drive_${index}`),
});

const bios = ({ path, device }: Call) => ({
  "@odata.id": path,
  "@odata.type": "#Bios.v1_2_0.Bios",
  Id: "Bios",
  Name: "BIOS settings",
  Attributes: { BootMode: device.state.boot.mode === "UEFI" ? "Uefi" : "Legacy", SriovGlobalEnable: "Enabled" },
});

const secureBoot = ({ path }: Call) => ({
  "@odata.id": path,
  "@odata.type": "#SecureBoot.v1_1_0.SecureBoot",
  Id: "SecureBoot",
  Name: "UEFI Secure Boot",
  SecureBootEnable: false,
  SecureBootCurrentBoot: "Disabled",
  SecureBootMode: "UserMode",
});
