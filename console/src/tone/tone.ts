import type { LifecycleState } from "../../../contract/millwright/v1/lifecycle_pb.js";

/** How a thing is, in five words. Each has a colour, an icon and a word: never the colour alone. */
export type Tone = "calm" | "working" | "waiting" | "trouble" | "person";

export const TONE_WORDS: Readonly<Record<Tone, string>> = {
  calm: "at rest",
  working: "working",
  waiting: "waiting",
  trouble: "in trouble",
  person: "needs a person",
};

export interface Standing {
  /** Of the lifecycle's table; undefined while the tables are not there yet. */
  readonly state: Pick<LifecycleState, "resting" | "terminal" | "trouble" | "sla"> | undefined;
  /** Since when it is in the state, in milliseconds. */
  readonly since?: number | undefined;
  /** By the server's clock. */
  readonly now: number;
  /** It waits for something that has a name. */
  readonly isWaiting?: boolean;
  /** The server says that it does not do what it should. */
  readonly isFailing?: boolean;
  /** The server says that somebody is needed. */
  readonly needsPerson?: boolean;
}

/** From what the API says of a state, so that a new lifecycle needs nothing here. The graver word wins. */
export function toneOf({ state, since, now, isWaiting, isFailing, needsPerson }: Standing): Tone {
  if (needsPerson) return "person";
  if (isFailing || (state?.trouble ?? false) || isAboveSla(state, since, now)) return "trouble";
  if (isWaiting) return "waiting";
  return state === undefined || state.resting || state.terminal ? "calm" : "working";
}

/** Longer in its state than the state's SLA: it counts as stuck. */
function isAboveSla(state: Standing["state"], since: number | undefined, now: number): boolean {
  if (state?.sla === undefined || since === undefined) return false;
  return now - since > Number(state.sla.seconds) * 1_000;
}
