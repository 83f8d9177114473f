import {
  ExpectedSwitchSchema,
  type LinkedExpectedSwitch,
  LinkedExpectedSwitchSchema,
} from "../../../../contract/forge/expected_pb.js";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";

const columns: readonly Column<LinkedExpectedSwitch>[] = [
  { title: "BMC MAC", cell: ({ bmcMacAddress }) => bmcMacAddress },
  { title: "SERIAL", cell: ({ switchSerialNumber }) => switchSerialNumber },
  { title: "RACK", cell: ({ rackId }) => rackId?.id ?? "-" },
  {
    title: "SWITCH",
    cell: ({ switchId }) => switchId?.id ?? "not found yet",
    plain: ({ switchId }) => switchId?.id ?? "",
  },
];

export async function listExpectedSwitches(session: Session): Promise<undefined> {
  const forge = await session.client(Forge);
  const { expectedSwitches: items } = await forge.getAllExpectedSwitchesLinked({}, { signal: session.signal });
  const json = (row: LinkedExpectedSwitch) => jsonOf(LinkedExpectedSwitchSchema, row);
  await printList(session, { items, columns, json }, "No expected switches.");
}

export async function showExpectedSwitch(session: Session, mac: string): Promise<undefined> {
  const forge = await session.client(Forge);
  const row = await forge.getExpectedSwitch({ bmcMacAddress: mac }, { signal: session.signal });
  const nvosAddress = await readNvosAddress(session, mac);
  await printOne(session, {
    item: row,
    columns: [
      { title: "BMC MAC", cell: ({ bmcMacAddress }) => bmcMacAddress },
      { title: "SERIAL", cell: ({ switchSerialNumber }) => switchSerialNumber },
    ],
    json: () => ({ ...(jsonOf(ExpectedSwitchSchema, row) as object), nvos_address: nvosAddress }),
    details: [
      ["BMC MAC", row.bmcMacAddress],
      ["BMC endpoint", row.bmcIpAddress],
      ["BMC user", row.bmcUsername],
      ["Serial", row.switchSerialNumber],
      ["Name", row.metadata?.name ?? ""],
      ["Rack", row.rackId?.id ?? ""],
      ["NVOS MACs", row.nvosMacAddresses.join(" ")],
      ["NVOS address", nvosAddress],
      ["NVOS user", row.nvosUsername ?? ""],
    ],
  });
}

/** Empty: nobody has set one. */
async function readNvosAddress(session: Session, mac: string): Promise<string> {
  const client = await session.client(SwitchService);
  const request = { bmcMacAddress: mac };
  const { addresses } = await client.listExpectedSwitchOsAddresses(request, { signal: session.signal });
  return addresses[0]?.osAddress ?? "";
}

/** Empty: the one that the BMC of the switch reports. */
export async function setNvosAddress(session: Session, mac: string, address: string): Promise<undefined> {
  const client = await session.client(SwitchService);
  await client.setExpectedSwitchOsAddress({ bmcMacAddress: mac, osAddress: address }, { signal: session.signal });
  const said = address === "" ? "is the one that its BMC reports" : `is ${address}`;
  await printDone(session, `The address of NVOS of expected switch ${mac} ${said}.`, {
    expected_switch: mac,
    nvos_address: address,
  });
}

export async function deleteExpectedSwitch(session: Session, mac: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete expected switch ${mac}?` });
  const forge = await session.client(Forge);
  await forge.deleteExpectedSwitch({ bmcMacAddress: mac }, { signal: session.signal });
  await printDone(session, `Expected switch ${mac} deleted.`, { expected_switch: mac });
}
