import {
  type DeviceUpdateResult,
  DeviceUpdateResultSchema,
  type RackFirmwareHistoryRecord,
  RackFirmwareHistoryRecordSchema,
  type RackFirmwareJobStatusResponse,
  RackFirmwareJobStatusResponseSchema,
} from "../../../../contract/forge/firmware_pb.js";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";

export interface HistoryOptions {
  readonly firmwareId?: string;
  readonly rackId?: readonly string[];
}

const resultColumns: readonly Column<DeviceUpdateResult>[] = [
  { title: "DEVICE", cell: ({ deviceId }) => deviceId },
  { title: "DEVICE TYPE", cell: ({ deviceType }) => deviceType },
  { title: "STATUS", cell: ({ success }) => (success ? "INITIATED" : "FAILED") },
  { title: "JOB ID", cell: ({ jobId }) => jobId },
];

export async function applyFirmware(session: Session, rack: string, id: string, type: string): Promise<undefined> {
  const forge = await session.client(Forge);
  const { deviceResults: items } = await forge.applyRackFirmware(
    { rackId: { id: rack }, firmwareId: id, firmwareType: type },
    { signal: session.signal },
  );
  await printList(
    session,
    { items, columns: resultColumns, json: (each) => jsonOf(DeviceUpdateResultSchema, each) },
    "No devices.",
  );
}

const jobColumns: readonly Column<RackFirmwareJobStatusResponse>[] = [
  { title: "JOB ID", cell: ({ jobId }) => jobId },
  { title: "STATE", cell: ({ state }) => state },
  { title: "RACK", cell: ({ rackId }) => rackId },
  { title: "DEVICE", cell: ({ nodeId }) => nodeId },
  { title: "ERROR", cell: ({ errorMessage }) => errorMessage },
];

export async function showJob(session: Session, jobId: string): Promise<undefined> {
  const forge = await session.client(Forge);
  const item = await forge.getRackFirmwareJobStatus({ jobId }, { signal: session.signal });
  await printOne(session, {
    item,
    columns: jobColumns,
    json: (each) => jsonOf(RackFirmwareJobStatusResponseSchema, each),
    details: [
      ["Job", item.jobId, "bold"],
      ["State", item.state],
      ["Rack", item.rackId],
      ["Device", item.nodeId],
      ["Error", item.errorMessage],
    ],
  });
}

const historyColumns: readonly Column<RackFirmwareHistoryRecord>[] = [
  { title: "RACK", cell: ({ rackId }) => rackId },
  { title: "FIRMWARE", cell: ({ firmwareId }) => firmwareId },
  { title: "CLASS", cell: ({ firmwareType }) => firmwareType },
  { title: "APPLIED", cell: ({ appliedAt }) => appliedAt },
  { title: "AVAILABLE", cell: ({ firmwareAvailable }) => String(firmwareAvailable) },
  { title: "HARDWARE TYPE", cell: ({ rackHardwareType }) => rackHardwareType?.value ?? "" },
];

export async function listHistory(
  session: Session,
  { firmwareId = "", rackId = [] }: HistoryOptions,
): Promise<undefined> {
  const forge = await session.client(Forge);
  const rackIds = rackId.flatMap((word) => word.split(",")).filter((word) => word !== "");
  const { histories } = await forge.getRackFirmwareHistory({ firmwareId, rackIds }, { signal: session.signal });
  const items = Object.entries(histories)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, { records }]) => records);
  await printList(
    session,
    { items, columns: historyColumns, json: (each) => jsonOf(RackFirmwareHistoryRecordSchema, each) },
    "No history.",
  );
}
