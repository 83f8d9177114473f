import { type Machine, MachineStatus_PhaseSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { enumName } from "../../api/enum-names.ts";

/** What a chip needs to know of a machine. */
export function standingOf({ machineId, status }: Machine) {
  const needsPerson = (status?.banners.length ?? 0) > 0;
  return {
    kind: "machine",
    id: machineId,
    state: enumName(MachineStatus_PhaseSchema, status?.effectiveState ?? 0),
    // What it is by its conditions or its run began at another time than its phase.
    since: status?.phase === status?.effectiveState ? status?.phaseSince : undefined,
    isWaiting: (status?.waitingFor ?? "") !== "",
    isFailing: status?.failing ?? false,
    needsPerson,
  };
}

/** The first thing to know beside its state: what calls for somebody, what it waits for, or what is not as it should be. */
export function remarkOf({ status }: Machine): string {
  if (status === undefined) return "";
  const { banners, waitingFor, conditions, failing } = status;
  const [banner] = banners;
  const named = conditions.find(({ type, message }) => type === banner && message !== "");
  if (banner !== undefined) return named ? `${banner}: ${named.message}` : banner;
  if (waitingFor !== "") return waitingFor;
  if (!failing) return "";
  return conditions.find(({ status: holds, message }) => !holds && message !== "")?.message ?? "";
}
