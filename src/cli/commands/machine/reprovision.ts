import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import type { Session } from "../../client/session.ts";
import { printDone } from "../../terminal/printing.ts";

export interface ReprovisionOptions {
  readonly reset?: boolean;
  readonly reference?: string;
}

export async function reprovisionMachine(
  session: Session,
  machineId: string,
  { reset = false, reference = "" }: ReprovisionOptions,
): Promise<undefined> {
  const client = await session.client(MachineLifecycleService);
  const { requestId } = await client.reprovisionMachine({ machineId, reset, reference }, { signal: session.signal });
  await printDone(
    session,
    `Machine ${machineId} renews its firmware as soon as it may: millwright explain host_reprovision ${machineId}`,
    {
      machine_id: machineId,
      request_id: requestId,
    },
  );
}
