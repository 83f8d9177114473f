import { PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import type { Session } from "../../client/session.ts";
import { printDeviceLog } from "../device/log.ts";

export async function showDeviceLog(session: Session, id: string): Promise<undefined> {
  const client = await session.client(PowerShelfService);
  const { logEntries } = await client.getPowerShelf({ id }, { signal: session.signal });
  await printDeviceLog(session, logEntries);
}
