import { z } from "zod";
import { HEAD_BYTES, readImage } from "../../devices/firmware/firmware-image.ts";
import { UPDATE_WAYS, type UpdateOrder, type UpdateWay } from "../../devices/firmware/firmware-state.ts";
import type { ManagedDevice } from "../../devices/managed-device.ts";
import type { Trait } from "../../devices/profile.ts";
import { type Answer, noContent, ok, refuse } from "../answer.ts";
import { sha256Of } from "../fetch-medium.ts";
import { readBodyOf } from "../patch-body.ts";
import { collection, link, type Resource, type ResourceCall } from "../resources.ts";
import { readMultipart } from "./multipart.ts";
import { taskBody, taskMonitor } from "./task-resources.ts";
import type { Upload } from "./upload.ts";

export const UPDATE = "/redfish/v1/UpdateService";
const INVENTORY = `${UPDATE}/FirmwareInventory`;
const SIMPLE_UPDATE = `${UPDATE}/Actions/UpdateService.SimpleUpdate`;
const PUSH = `${UPDATE}/update`;
const MULTIPART = `${UPDATE}/update-multipart`;
const PROTOCOLS = ["HTTP", "HTTPS"] as const;
const LATER_SECONDS = "1";

const ONE_WAY: Readonly<Partial<Record<Trait, UpdateWay>>> = {
  push_only: "push",
  multipart_only: "multipart",
  simple_only: "simple",
};

type Call = ResourceCall;

const targets = z.array(z.string().max(500)).max(16);
const simpleSchema = z.strictObject({
  ImageURI: z.string().min(1).max(2_000),
  TransferProtocol: z.enum(PROTOCOLS).optional(),
  Targets: targets.optional(),
  Username: z.string().max(256).optional(),
  Password: z.string().max(256).optional(),
  ForceUpdate: z.boolean().optional(),
});
const patchSchema = z.strictObject({
  HttpPushUriTargets: targets.optional(),
  HttpPushUriTargetsBusy: z.boolean().optional(),
  HttpPushUriOptions: z
    .strictObject({ HttpPushUriApplyTime: z.strictObject({ ApplyTime: z.enum(["Immediate"]) }) })
    .optional(),
});

/** Bodies of any size that are read as they come, and not kept. */
export const isUpload = (method: string, path: string): boolean =>
  method === "POST" && (path === PUSH || path === MULTIPART);

/** What is installed, and the three ways to replace it; which of them there are is a matter of the controller's traits. */
export const updateResources = <D extends ManagedDevice>(): [string, Resource<D>][] => [
  [UPDATE, { GET: ({ device }) => ok(updateService(device)), PATCH: patchService }],
  [INVENTORY, { GET: ({ device, path }) => ok(inventory(device, path)) }],
  [SIMPLE_UPDATE, { POST: simpleUpdate }],
  [PUSH, { POST: (call) => uploaded(call, "push") }],
  [MULTIPART, { POST: (call) => uploaded(call, "multipart") }],
];

/** Which components there are is the device's own affair. */
export const firmwareMembers: [string, Resource] = [INVENTORY, { GET: component }];

const waysOf = ({ traits }: ManagedDevice): readonly UpdateWay[] => {
  const only = traits.map((trait) => ONE_WAY[trait]).find((way) => way !== undefined);
  return only === undefined ? UPDATE_WAYS : [only];
};

function updateService(device: ManagedDevice) {
  const ways = waysOf(device);
  const { pushTargets, pushTargetsBusy } = device.firmware.pushTargets;
  return {
    "@odata.id": UPDATE,
    "@odata.type": "#UpdateService.v1_13_0.UpdateService",
    Id: "UpdateService",
    Name: "Update Service",
    ServiceEnabled: true,
    FirmwareInventory: link(INVENTORY),
    ...(ways.includes("push")
      ? { HttpPushUri: PUSH, HttpPushUriTargets: pushTargets, HttpPushUriTargetsBusy: pushTargetsBusy }
      : {}),
    ...(ways.includes("multipart") ? { MultipartHttpPushUri: MULTIPART } : {}),
    // Clients take a service without the member for no service.
    Actions: ways.includes("simple")
      ? {
          "#UpdateService.SimpleUpdate": {
            target: SIMPLE_UPDATE,
            "TransferProtocol@Redfish.AllowableValues": PROTOCOLS,
          },
        }
      : {},
  };
}

const inventory = ({ firmware }: ManagedDevice, path: string) =>
  collection(
    path,
    "SoftwareInventoryCollection",
    "Firmware inventory",
    firmware.components.map(({ id }) => `${path}/${id}`),
  );

function component({ device, member, path }: Call): Answer {
  const found = device.firmware.components.find(({ id }) => id === member);
  if (found === undefined) return refuse("ResourceMissingAtURI", path);
  const version = device.firmware.version(member);
  return ok({
    "@odata.id": path,
    "@odata.type": "#SoftwareInventory.v1_10_0.SoftwareInventory",
    Id: member,
    Name: found.name,
    Manufacturer: device.spec.vendor,
    ...(version === null ? {} : { Version: version }),
    SoftwareId: `${device.spec.model}/${member}`,
    Updateable: true,
    RelatedItem: [link(found.of)],
    Status: { State: "Enabled", Health: version === null ? "Critical" : "OK" },
  });
}

function patchService({ device, body, path }: Call): Answer {
  if (!waysOf(device).includes("push")) return refuse("OperationNotAllowed", `PATCH ${path}`);
  const read = readBodyOf(patchSchema, body);
  if ("refused" in read) return read.refused;
  const before = device.firmware.pushTargets;
  const { HttpPushUriTargets = before.pushTargets, HttpPushUriTargetsBusy = before.pushTargetsBusy } = read.value;
  const unknown = HttpPushUriTargets.find((each) => !isTarget(device, each));
  if (unknown !== undefined) return refuse("PropertyValueNotInList", "HttpPushUriTargets", targetsOf(device));
  device.firmware.setPushTargets(HttpPushUriTargets, HttpPushUriTargetsBusy);
  return noContent;
}

/** Downloaded before it is answered, as small controllers do; what could not be downloaded is the task's affair. */
function simpleUpdate(call: Call): Answer {
  const { device, body, fetched, path } = call;
  if (!waysOf(device).includes("simple")) return refuse("ResourceMissingAtURI", path);
  const read = readBodyOf(simpleSchema, body, "UpdateService.SimpleUpdate");
  if ("refused" in read) return read.refused;
  const { ImageURI, Targets = [] } = read.value;
  if (!/^https?:\/\//.test(ImageURI)) return refuse("PropertyValueTypeError", "ImageURI");
  const refused = refusal(call, Targets);
  if (refused !== undefined) return refused;
  if (fetched === undefined) return { status: 0, fetchFirst: ImageURI };
  if ("why" in fetched) return begin(call, "simple", Targets, { why: `the image was not transferred: ${fetched.why}` });
  const whole = { bytes: fetched.content.length, digest: sha256Of(fetched.content) };
  return begin(call, "simple", Targets, readImage(fetched.content.subarray(0, HEAD_BYTES), whole));
}

function uploaded(call: Call, way: "push" | "multipart"): Answer {
  const { device, upload, path } = call;
  if (!waysOf(device).includes(way)) return refuse("ResourceMissingAtURI", path);
  if (upload === undefined) return refuse("UnrecognizedRequestBody", "it must be an image.");
  const given = way === "push" ? pushed(device, upload) : readMultipart(upload);
  if ("malformed" in given) return refuse("UnrecognizedRequestBody", given.malformed);
  const refused = refusal(call, given.targets);
  if (refused !== undefined) return refused;
  return begin(call, way, given.targets, readImage(given.head, upload));
}

const pushed = (device: ManagedDevice, { head }: Upload) => ({
  head,
  targets: device.firmware.pushTargets.pushTargets,
});

/** Undefined: nothing speaks against beginning. */
function refusal({ device, strike }: Call, wanted: readonly string[]): Answer | undefined {
  if (strike("update_busy")) return busy;
  const unknown = wanted.find((each) => !isTarget(device, each));
  if (unknown !== undefined)
    return refuse("ActionParameterValueNotInList", "UpdateService.SimpleUpdate", "Targets", targetsOf(device));
  if (device.firmware.flashes.some(({ outcome }) => outcome === "running"))
    return refuse("ResourceInUse", "Another update is under way.");
  return undefined;
}
const LATER = { "Retry-After": LATER_SECONDS };
const busy: Answer = { ...refuse("ServiceTemporarilyUnavailable", LATER_SECONDS), headers: LATER };

function begin({ device }: Call, way: UpdateWay, wanted: readonly string[], image: UpdateOrder["image"]): Answer {
  const flash = device.firmware.update({ way, targets: wanted, image });
  if (flash === undefined) return refuse("ResourceInUse", "Another update is under way.");
  if (device.traits.includes("busy_though_taken")) return busy;
  return { status: 202, headers: { Location: taskMonitor(flash), ...LATER }, body: taskBody(device, flash) };
}

const isTarget = ({ firmware }: ManagedDevice, path: string): boolean =>
  firmware.components.some(({ id }) => path === `${INVENTORY}/${id}`);

const targetsOf = ({ firmware }: ManagedDevice): string =>
  firmware.components.map(({ id }) => `${INVENTORY}/${id}`).join(", ");
