import { z } from "zod";
import type { Machine } from "../devices/machine.ts";
import type { VirtualDrive } from "../devices/machine-state.ts";
import { readSeed } from "../devices/seed-volume.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { readBodyOf } from "./patch-body.ts";
import { collection, type Resource, type ResourceCall } from "./resources.ts";

export const VIRTUAL_MEDIA = "/redfish/v1/Managers/bmc/VirtualMedia";
/** A machine installs from the first; the second holds what its installer reads beside that. */
const DRIVES: Readonly<Record<VirtualDrive, { readonly id: string; readonly name: string }>> = {
  media: { id: "Cd", name: "Virtual CD" },
  secondMedium: { id: "Cd2", name: "Second virtual CD" },
};
const pathOf = (drive: VirtualDrive): string => `${VIRTUAL_MEDIA}/${DRIVES[drive].id}`;
const insertOf = (drive: VirtualDrive): string => `${pathOf(drive)}/Actions/VirtualMedia.InsertMedia`;
const ejectOf = (drive: VirtualDrive): string => `${pathOf(drive)}/Actions/VirtualMedia.EjectMedia`;

type Call = ResourceCall<Machine>;

const insertSchema = z.strictObject({
  Image: z.url().max(1_000),
  Inserted: z.literal(true).optional(),
  WriteProtected: z.boolean().optional(),
  UserName: z.string().max(128).optional(),
  Password: z.string().max(128).optional(),
  TransferMethod: z.enum(["Stream", "Upload"]).optional(),
  TransferProtocolType: z.enum(["HTTP", "HTTPS", "NFS", "CIFS"]).optional(),
  MediaType: z.enum(["CD", "DVD"]).optional(),
});

export function virtualMediaResources(): [string, Resource<Machine>][] {
  const drives = Object.keys(DRIVES) as VirtualDrive[];
  return [
    [
      VIRTUAL_MEDIA,
      {
        GET: ({ path, device }) => {
          const shown = drives.filter((drive) => hasDrive(device, drive));
          return ok(collection(path, "VirtualMediaCollection", "Virtual media", shown.map(pathOf)));
        },
      },
    ],
    ...drives.flatMap((drive): [string, Resource<Machine>][] => [
      [pathOf(drive), { GET: ifThere(drive, (call) => ok(mediaBody(call, drive))) }],
      [insertOf(drive), { POST: ifThere(drive, (call) => insertMedia(call, drive)) }],
      [ejectOf(drive), { POST: ifThere(drive, (call) => ejectMedia(call, drive)) }],
    ]),
  ];
}

const hasDrive = (device: Machine, drive: VirtualDrive): boolean =>
  drive !== "secondMedium" || !device.has("one_virtual_drive");

const ifThere =
  (drive: VirtualDrive, answer: (call: Call) => Answer) =>
  (call: Call): Answer =>
    hasDrive(call.device, drive) ? answer(call) : refuse("ResourceMissingAtURI", call.path);

function mediaBody({ device }: Call, drive: VirtualDrive) {
  const media = device.state[drive] ?? null;
  const { id, name } = DRIVES[drive];
  return {
    "@odata.id": pathOf(drive),
    "@odata.type": "#VirtualMedia.v1_6_3.VirtualMedia",
    Id: id,
    Name: name,
    MediaTypes: ["CD", "DVD"],
    // The standard forbids to show the password ever again.
    Image: media?.image ?? null,
    ImageName: media === null ? null : media.image.replace(/[?#].*$/s, "").replace(/^.*\//s, ""),
    UserName: media?.userName ?? null,
    Password: null,
    Inserted: media !== null,
    WriteProtected: media?.writeProtected ?? true,
    ConnectedVia: media === null ? "NotConnected" : "URI",
    Status: { State: "Enabled", Health: "OK" },
    Actions: {
      "#VirtualMedia.InsertMedia": { target: insertOf(drive) },
      "#VirtualMedia.EjectMedia": { target: ejectOf(drive) },
    },
  };
}

/**
 * What is inserted stays until it is ejected, as with most controllers: another image is refused, the same one is fine. What installers
 * read on their media must be fetched to be known. A controller that streams its medium takes one that cannot be fetched, too.
 */
function insertMedia({ device, body, fetched }: Call, drive: VirtualDrive): Answer {
  const read = readBodyOf(insertSchema, body, "VirtualMedia.InsertMedia");
  if ("refused" in read) return read.refused;
  const { Image, UserName = null, WriteProtected = true } = read.value;
  const media = device.state[drive] ?? null;
  if (media !== null && media.image !== Image) return refuse("ResourceInUse", "Eject what is inserted first.");
  if (media !== null) return noContent;
  const isDownloaded = drive === "secondMedium" || device.has("media_downloaded");
  const isRead = isDownloaded || device.has("one_virtual_drive") || device.has("medium_url_hidden");
  if (isRead && fetched === undefined) return { ...noContent, fetchFirst: Image };
  if (isDownloaded && fetched !== undefined && "why" in fetched)
    return refuse("GeneralError", `The medium ${Image} could not be downloaded: ${fetched.why}`);
  const seed = fetched !== undefined && "content" in fetched ? readSeed(fetched.content) : {};
  device.insertMedia({ image: Image, userName: UserName, writeProtected: WriteProtected, ...seed }, drive);
  return noContent;
}

function ejectMedia({ device, body }: Call, drive: VirtualDrive): Answer {
  const read = readBodyOf(z.strictObject({}), body ?? {}, "VirtualMedia.EjectMedia");
  if ("refused" in read) return read.refused;
  device.ejectMedia(drive);
  return noContent;
}
