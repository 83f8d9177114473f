import { type Run, Run_PhaseSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { enumName } from "../../api/enum-names.ts";

/** What a chip needs to know of a run. */
export function standingOf({ runId, phase, waitingFor, manual, startedAt, finishedAt, createdAt }: Run) {
  return {
    kind: "run",
    id: runId,
    state: enumName(Run_PhaseSchema, phase),
    since: finishedAt ?? startedAt ?? createdAt,
    isWaiting: waitingFor !== "",
    needsPerson: manual !== undefined,
  };
}

/** What it is for: its type where it has one, else its plan. */
export const purposeOf = ({ type, planId }: Pick<Run, "type" | "planId">): string => type || planId;
