import { Forge } from "../../../../contract/forge/forge_pb.js";
import { GetRackProfileResponseSchema } from "../../../../contract/forge/rack_pb.js";
import { type RackProfile, RackProfileSchema, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";

const columns: readonly Column<RackProfile>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "HARDWARE TYPE", cell: ({ hardwareType }) => hardwareType || "-" },
  { title: "TOPOLOGY", cell: ({ topology }) => topology || "-" },
  { title: "CLASS", cell: ({ class: kind }) => kind },
  { title: "TRAYS", cell: ({ compute }) => String(compute?.count ?? 0) },
  { title: "SWITCHES", cell: ({ switches }) => String(switches?.count ?? 0) },
  { title: "SHELVES", cell: ({ powerShelves }) => String(powerShelves?.count ?? 0) },
];
const json = (profile: RackProfile) => jsonOf(RackProfileSchema, profile);

export async function listProfiles(session: Session): Promise<undefined> {
  const client = await session.client(RackService);
  const { profiles } = await client.listRackProfiles({}, { signal: session.signal });
  await printList(session, { items: profiles, columns, json }, "No rack profiles.");
}

export async function showProfile(session: Session, rack: string): Promise<undefined> {
  const forge = await session.client(Forge);
  const answer = await forge.getRackProfile({ rackId: { id: rack } }, { signal: session.signal });
  const name = answer.rackProfileId?.id;
  if (name === undefined)
    throw new CliError(EXIT.precondition, `rack ${rack} has no profile`, "`millwright site apply` gives it one");
  const client = await session.client(RackService);
  const { profiles } = await client.listRackProfiles({}, { signal: session.signal });
  const profile = profiles.find((each) => each.name === name);
  if (!profile) throw new CliError(EXIT.notFound, `rack ${rack} names profile ${name}, which does not exist`);
  const part = (of: RackProfile["compute"]) =>
    of === undefined
      ? ""
      : [`${of.count}`, of.vendor, of.name, of.watts > 0 ? `${of.watts} W each` : ""].filter(Boolean).join(", ");
  await printOne(session, {
    item: profile,
    columns,
    json: () => ({ ...(jsonOf(GetRackProfileResponseSchema, answer) as object), rack_profile: json(profile) }),
    details: [
      ["Rack", rack],
      ["Profile", profile.name],
      ["Hardware type", profile.hardwareType],
      ["Topology", profile.topology],
      ["Class", profile.class],
      ["Compute trays", part(profile.compute)],
      ["Switches", part(profile.switches)],
      ["Power shelves", part(profile.powerShelves)],
    ],
  });
}

export async function deleteProfile(session: Session, name: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete rack profile ${name}?` });
  const client = await session.client(RackService);
  await client.deleteRackProfile({ name }, { signal: session.signal });
  await printDone(session, `Rack profile ${name} deleted.`, { rack_profile: name });
}
