import type { ThingKey, ThingStores } from "../../store/lifecycle/things.ts";

/** Something to do, as it is typed. */
export interface NextCommand {
  readonly command: string;
  readonly why: string;
}

export interface LastFailure {
  readonly at: Date | null;
  /** Empty when it was in none. */
  readonly runId: string;
  /** The step or the state in which it happened. */
  readonly step: string;
  /** From 1 on. */
  readonly attempt: number;
  readonly message: string;
}

/** Somebody who stands in the way. */
export interface ClaimLink {
  readonly thing: ThingKey;
  readonly holder: ThingKey;
  /** Since when it holds, or waits. */
  readonly since: Date;
  /** What the holder does with the thing. */
  readonly reason: string;
}

/** Why a thing is as it is, and what to do about it. */
export interface Explanation {
  /** The whole answer in one line. */
  readonly headline: string;
  /** Empty when it does nothing. */
  readonly doing: string;
  /** The next first. */
  readonly waitingFor: readonly string[];
  readonly since: Date | null;
  readonly claims: readonly ClaimLink[];
  readonly lastFailure: LastFailure | null;
  /** Safe to give now, the most helpful first. */
  readonly nextCommands: readonly NextCommand[];
}

export const say = (command: string, why: string): NextCommand => ({ command: `millwright ${command}`, why });

/** Each command once, where it came first. */
export const inOrder = (commands: readonly NextCommand[]): NextCommand[] =>
  commands.filter(({ command }, at) => commands.findIndex((one) => one.command === command) === at);

/** The command that explains the holder of a claim; none where the holder is of a kind that this server cannot explain. */
export const explainHolder = (stores: ThingStores, holder: ThingKey | undefined): NextCommand[] =>
  holder !== undefined && stores.has(holder.kind)
    ? [say(`explain ${holder.kind} ${holder.id}`, "explains what the holder does and waits for")]
    : [];
