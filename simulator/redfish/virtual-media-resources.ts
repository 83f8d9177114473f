import { z } from "zod";
import type { Machine } from "../devices/machine.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { readBodyOf } from "./patch-body.ts";
import { collection, type Resource, type ResourceCall } from "./resources.ts";

export const VIRTUAL_MEDIA = "/redfish/v1/Managers/bmc/VirtualMedia";
const CD = `${VIRTUAL_MEDIA}/Cd`;
const INSERT = `${CD}/Actions/VirtualMedia.InsertMedia`;
const EJECT = `${CD}/Actions/VirtualMedia.EjectMedia`;

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
  return [
    [VIRTUAL_MEDIA, { GET: ({ path }) => ok(collection(path, "VirtualMediaCollection", "Virtual media", [CD])) }],
    [CD, { GET: (call) => ok(mediaBody(call)) }],
    [INSERT, { POST: insertMedia }],
    [EJECT, { POST: ejectMedia }],
  ];
}

function mediaBody({ device }: Call) {
  const { media } = device.state;
  return {
    "@odata.id": CD,
    "@odata.type": "#VirtualMedia.v1_6_3.VirtualMedia",
    Id: "Cd",
    Name: "Virtual CD",
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
      "#VirtualMedia.InsertMedia": { target: INSERT },
      "#VirtualMedia.EjectMedia": { target: EJECT },
    },
  };
}

/** What is inserted stays until it is ejected, as with most controllers: another image is refused, the same one is fine. */
function insertMedia({ device, body }: Call): Answer {
  const read = readBodyOf(insertSchema, body, "VirtualMedia.InsertMedia");
  if ("refused" in read) return read.refused;
  const { Image, UserName = null, WriteProtected = true } = read.value;
  const { media } = device.state;
  if (media !== null && media.image !== Image) return refuse("ResourceInUse", "Eject what is inserted first.");
  if (media === null) device.insertMedia({ image: Image, userName: UserName, writeProtected: WriteProtected });
  return noContent;
}

function ejectMedia({ device, body }: Call): Answer {
  const read = readBodyOf(z.strictObject({}), body ?? {}, "VirtualMedia.EjectMedia");
  if ("refused" in read) return read.refused;
  device.ejectMedia();
  return noContent;
}
