import { type ExpectedRack, ExpectedRackSchema } from "../../../../contract/forge/expected_pb.js";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";

const columns: readonly Column<ExpectedRack>[] = [
  { title: "RACK", cell: ({ rackId }) => rackId?.id ?? "" },
  { title: "PROFILE", cell: ({ rackProfileId }) => rackProfileId?.id ?? "" },
  { title: "NAME", cell: ({ metadata }) => metadata?.name ?? "" },
];
const json = (row: ExpectedRack) => jsonOf(ExpectedRackSchema, row);

export async function listExpectedRacks(session: Session): Promise<undefined> {
  const forge = await session.client(Forge);
  const { expectedRacks: items } = await forge.getAllExpectedRacks({}, { signal: session.signal });
  await printList(session, { items, columns, json }, "No expected racks.");
}

export async function showExpectedRack(session: Session, rackId: string): Promise<undefined> {
  const forge = await session.client(Forge);
  const row = await forge.getExpectedRack({ rackId }, { signal: session.signal });
  await printOne(session, {
    item: row,
    columns,
    json,
    details: [
      ["Rack", rackId],
      ["Profile", row.rackProfileId?.id ?? ""],
      ["Name", row.metadata?.name ?? ""],
      ["Description", row.metadata?.description ?? ""],
    ],
  });
}

export async function deleteExpectedRack(
  session: Session,
  rackId: string,
  { yes }: ConfirmOptions,
): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete expected rack ${rackId}?` });
  const forge = await session.client(Forge);
  await forge.deleteExpectedRack({ rackId }, { signal: session.signal });
  await printDone(session, `Expected rack ${rackId} deleted.`, { expected_rack: rackId });
}
