import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import type { Session } from "../../client/session.ts";
import { printDone } from "../../terminal/printing.ts";

/** The server refuses another fingerprint than the one that the BMC shows. */
export async function acceptCertificate(
  session: Session,
  machineId: string,
  { fingerprint }: { readonly fingerprint: string },
): Promise<undefined> {
  const client = await session.client(MachineLifecycleService);
  await client.acceptMachineCertificate({ machineId, fingerprint }, { signal: session.signal });
  await printDone(session, `Certificate of machine ${machineId} accepted.`, { machine_id: machineId });
}
