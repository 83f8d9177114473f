import type { Move } from "../kernel/decide.ts";
import { GONE, type Lifecycle, rowsFrom, type StoredOutcome, type Thing } from "../kernel/lifecycle.ts";
import type { Log } from "../kernel/log.ts";
import type { PassResult } from "./pass.ts";

const MOST_REMEMBERED = 10_000;

const isTrouble = (outcome: StoredOutcome | null): outcome is StoredOutcome =>
  outcome?.type === "failing" || outcome?.type === "needs_intervention";

export interface Committed {
  readonly lifecycle: Lifecycle<Thing>;
  /** As it was before the pass. */
  readonly thing: Thing;
  readonly pass: PassResult;
}

/**
 * Tells the log what became of things: once per change, never per pass.
 *
 * What was told before is mostly read from the thing itself, so that all replicas together tell it once.
 */
export class ChangeLog {
  readonly #log: Log;
  /**
   * The stay in a state for which trouble was told. A device that refuses a command shows as failing and as waiting in turn,
   * and the thing alone does not say that both are one story.
   */
  readonly #told = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  committed({ lifecycle, thing, pass }: Committed): void {
    const failed = pass.move !== undefined && isFailure(lifecycle, pass.move);
    this.#tellTrouble(lifecycle.kind, thing, pass.outcome, failed);
    if (pass.move) this.#tellMove(lifecycle, thing.id, pass.move, failed);
    for (const { move } of pass.further ?? [])
      if (move) this.#tellMove(lifecycle, thing.id, move, isFailure(lifecycle, move));
  }

  #tellTrouble(kind: string, thing: Thing, now: StoredOutcome | null, failed: boolean): void {
    const { id, outcome: before, stateVersion } = thing;
    const key = `${kind} ${id}`;
    const wasTold = isTrouble(before) || (before !== null && this.#told.get(key) === stateVersion);
    const fields = { kind, id, state: thing.state.name };
    if (isTrouble(now)) {
      const { type, reason, cause } = now;
      const why = { reason, ...(cause && { cause: cause.code }) };
      const isWorse = type === "needs_intervention" && before?.type !== type;
      if (!wasTold || isWorse) this.#log.warn({ ...fields, ...why }, type === "failing" ? "failing" : "needs a person");
      this.#remember(key, stateVersion);
    } else if (now === null) {
      this.#told.delete(key);
      if (wasTold && !failed) this.#log.info(fields, "recovered");
    }
  }

  #tellMove(lifecycle: Lifecycle<Thing>, id: string, move: Move, failed: boolean): void {
    const { from, to, gone, trigger, message, cause } = move;
    const isOfInterest = isRequested(move) || (lifecycle.toldInFull === true && from !== to);
    const fields = {
      kind: lifecycle.kind,
      id,
      from,
      to: gone ? GONE : to,
      trigger,
      ...requestOf(move),
      ...(message !== undefined && { reason: message }),
      ...(cause && { cause: cause.code }),
    };
    if (failed) this.#log.warn(fields, "failed");
    else if (isOfInterest) this.#log.info(fields, "moved");
    else this.#log.debug(fields, "moved");
  }

  #remember(key: string, stateVersion: number): void {
    this.#told.delete(key);
    this.#told.set(key, stateVersion);
    const [oldest] = this.#told.keys();
    if (this.#told.size > MOST_REMEMBERED && oldest !== undefined) this.#told.delete(oldest);
  }
}

export const isFailure = (lifecycle: Lifecycle<Thing>, { from, owner, trigger }: Move): boolean =>
  rowsFrom(lifecycle, from).some(([, row]) => row.failure && row.owner === owner && row.name === trigger);

/** Somebody asked for it, or it is the end: of interest also where nothing is wrong. The rest is how things come to rest. */
const isRequested = ({ gone, ends, withdraws, supersedes, expires, carried }: Move): boolean =>
  gone || ends.length > 0 || (withdraws ?? supersedes ?? expires) !== undefined || "request" in carried;

/** The request that is taken up or that ends. */
function requestOf({ ends, carried }: Move): { readonly operation?: string; readonly request?: string } {
  const request = ends[0]?.request ?? carried.request;
  if (typeof request !== "object" || request === null) return {};
  const { id, operation } = request as { readonly id?: unknown; readonly operation?: unknown };
  return {
    ...(typeof operation === "string" && { operation }),
    ...(typeof id === "string" && { request: id }),
  };
}
