import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import type { Session } from "../../client/session.ts";
import { actOnEach, type Done } from "../device/many.ts";
import type { Chosen } from "../device/many-options.ts";
import { readMachines } from "./read.ts";

export interface ReprovisionOptions extends Omit<Chosen, "ids"> {
  readonly reset?: boolean;
  readonly reference?: string;
}

/** Each machine by a request of its own. */
export function reprovisionMachines(
  session: Session,
  { reset = false, reference = "", ...chosen }: ReprovisionOptions & Chosen,
): Promise<number | undefined> {
  const act = async (machineId: string): Promise<Done> => {
    const client = await session.client(MachineLifecycleService);
    const { requestId } = await client.reprovisionMachine({ machineId, reset, reference }, { signal: session.signal });
    return {
      sentence: `Machine ${machineId} renews its firmware as soon as it may: millwright explain host_reprovision ${machineId}`,
      facts: { machine_id: machineId, request_id: requestId },
    };
  };
  const list = async (filter: string) => (await readMachines(session, filter)).map(({ machineId }) => machineId);
  return actOnEach(session, { word: "reprovision", noun: "machine", nouns: "machines", list, act }, chosen);
}
