import { type Run, Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import type { Tone } from "../../terminal/table.ts";
import { age, toDate } from "../../terminal/times.ts";

export const phaseOf = ({ phase }: Pick<Run, "phase">): string => Run_Phase[phase] ?? "UNKNOWN";

const TONES: { readonly [phase in Run_Phase]?: Tone } = {
  [Run_Phase.RUNNING]: "busy",
  [Run_Phase.SUCCEEDED]: "good",
  [Run_Phase.FAILED]: "bad",
  [Run_Phase.CANCELED]: "dim",
};
export const toneOf = ({ phase }: Pick<Run, "phase">): Tone | undefined => TONES[phase];

/** How long it took, or has taken so far. */
export function tookText({ startedAt, finishedAt }: Pick<Run, "startedAt" | "finishedAt">, now: Date): string {
  if (!startedAt) return "";
  return finishedAt ? age(startedAt, toDate(finishedAt)) : `${age(startedAt, now)} so far`;
}
