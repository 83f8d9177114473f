import type { CallContext } from "../../capabilities/call.ts";
import type { Capabilities, Capability } from "../../capabilities/provider.ts";
import type { StreamOptions } from "../../capabilities/stream.ts";
import type { Cause } from "../../kernel/causes.ts";
import type { CreateEffect, Effect } from "../../kernel/effects.ts";
import type { JsonObject, Thing } from "../../kernel/lifecycle.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { BackOff } from "../../kernel/time/retry.ts";
import type { ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import type { Machine, PhaseAfterRun } from "../../lifecycles/machine/machine.ts";
import type { ChildRun, NewChild } from "../children/child-run.ts";
import type { ParsePayload } from "./plan/payloads.ts";
import type { MediumRefusal } from "./run.ts";
import type { Reference, StepTargets } from "./targets.ts";

export interface StepDefaults {
  /** For one attempt. */
  readonly timeout: Duration;
  /** Attempts after the first one. */
  readonly maxRetries: number;
}

/** The server's defaults, for kinds that do not have their own. */
export const STEP_DEFAULTS: StepDefaults = { timeout: seconds(300), maxRetries: 0 };

/** The pause before retry 1, 2, 3, 4, 5 …: 1, 2, 4, 8, 10 s …, spread a little (`pauseBefore`). */
export const STEP_RETRY: BackOff = { first: seconds(1), most: seconds(10) };

/** As much of a step kind as validating a plan takes. */
export interface StepShape<K extends string = string, P extends JsonObject = JsonObject> {
  readonly kind: K;
  readonly defaults: StepDefaults;
  readonly parse: ParsePayload<P>;
  /** Where how long it takes depends on what it is told: instead of the default of its kind. Pure. */
  timeoutFor?(payload: P): Duration;
}

/** Kinds by their word: what a plan may consist of. */
export type StepShapes = ReadonlyMap<string, StepShape>;

export const LOG_STREAMS = ["stdout", "stderr"] as const;
export type LogStream = (typeof LOG_STREAMS)[number];
/** Adds to the run's log. Returns at once; the executor stores in batches. */
export type StepLog = (text: string | Uint8Array, stream?: LogStream) => void;

/** How much of what a script wrote, by its mark, was passed on to the run's log; in bytes. Kept with the log, or not at all. */
export interface HeardSoFar {
  upTo(mark: string, stream: LogStream): number;
  note(mark: string, stream: LogStream, upTo: number): void;
}

/** What steps on a thing of this kind work with, beside what all steps do. */
export interface On<T extends Thing> {
  /** What the run works on. */
  readonly target: T;
}

/** What steps on machines work with, beside what all steps do. */
export interface OnMachine extends On<Machine> {
  readonly machine: Machine;
  /** Where the machine and what the payload names are; secrets are looked up only when asked for. */
  readonly targets: StepTargets;
  /**
   * Another system is installed before anything is wanted of the one of now, or the machine goes out of use: its system need neither
   * be the one we know, nor let us in, nor run.
   */
  readonly isReplacedNext: boolean;
  /** The image that the next step that installs one names; null when none does. */
  readonly installsNext: string | null;
  /** Which installer has said last that it has begun (`installerMark`); null: none. */
  readonly installerSeen: string | null;
  /** Why the BMC was not given its medium; null: it was, or has not asked. */
  readonly mediumRefused?: MediumRefusal | null;
}

/** What all steps work with, whatever their target is. */
interface CommonContext<P, C extends Capability, U extends Capability> {
  readonly payload: P;
  readonly runId: string;
  /** Exactly what the kind `needs`; what it `mayUse` is there when the provider has it. */
  readonly can: Pick<Capabilities, C> & Partial<Pick<Capabilities, U>>;
  /** `call.signal` obeys a cancel of the run, a stop of this process, and the lease; the attempt's timeout counts between passes. */
  readonly call: CallContext;
  /** The database's, which all replicas share. */
  readonly clock: Pick<Clock, "now">;
  readonly log: StepLog;
  /** What the caller of StartRun gave. */
  readonly params: Readonly<Record<string, string>>;
  readonly heard: HeardSoFar;
  /** The runs that this step has started, in this round of it. */
  readonly children: readonly ChildRun[];
  /** The effect that starts a run on another thing, as a part of this step. Asked for twice, it starts one. */
  startRun(child: NewChild): CreateEffect;
}

/** Whom and what a step works with. */
export type StepContext<
  P,
  C extends Capability = Capability,
  U extends Capability = never,
  X = OnMachine,
> = CommonContext<P, C, U> & X;

/** Once the intent is persisted, its evidence goes along. */
export type ActingContext<
  P,
  E,
  C extends Capability = Capability,
  U extends Capability = never,
  R extends JsonObject = JsonObject,
  X = OnMachine,
> = StepContext<P, C, U, X> & {
  readonly evidence: E;
  /**
   * What the action returned, such as the job that the device made of it. Null before the action, where it returned none, and where
   * the process died before the receipt was written: then the device alone can say what became of the action.
   */
  readonly receipt: R | null;
  /** Set where this process announced the action and knows that it has not begun. After a crash nobody knows. */
  readonly hasNotBegun?: boolean;
  /** When the action was announced, by whichever process: it may have been done since. Null and absent: it was not. */
  readonly actingAt?: Date | null;
  /** Where the action is a stream: when its last progress was written. Null and absent: it has sent nothing that is on record. */
  readonly lastSentAt?: Date | null;
};

/** What comes of an action. It commits together with the fact that the action was done, or not at all. */
export interface Acted<R extends JsonObject = JsonObject> {
  /** Kept, and handed to `probe`, `carryOn` and `undo`: a task URI, a job id. */
  readonly receipt?: R;
  readonly effects?: readonly Effect[];
}

/**
 * not_done: nothing of it happened, so acting is safe. in_progress: it acts by itself; ask again. halfway: it has come as far as
 * it does by itself, and `carryOn` takes it further. done: the postcondition was read back. unknown: it cannot be told now; ask
 * again, and never act on it.
 */
export const PROBE_STATES = ["not_done", "in_progress", "halfway", "done", "unknown"] as const;
export type ProbeState = (typeof PROBE_STATES)[number];

export interface ProbeReport {
  readonly state: ProbeState;
  /** For people: what was seen, or what is waited for. */
  readonly message?: string;
  /** What the step found, by which a workflow may choose what comes next. Kept with the step's end. */
  readonly verdict?: string;
  /** What is in the way, for programs; why the step has failed, should its time be over. Absent where all goes its way. */
  readonly cause?: Cause;
  /** A patch of the machine's facts: what was read. Written with the step's end. */
  readonly facts?: JsonObject;
  /** What is now known of the machine. Written with the step's end. */
  readonly conditions?: readonly ObservedCondition[];
  /** What else the proof leads to. Written with the step's end. */
  readonly effects?: readonly Effect[];
  /** What is known for good by now: kept in the receipt's place, so that it need not be seen a second time. */
  readonly receipt?: JsonObject;
  /** What it is for is done: should its time be over, a person is called, and no further attempt does it again. */
  readonly callsPerson?: true;
}
export type ProbeAnswer = ProbeState | ProbeReport;

export const readProbe = (answer: ProbeAnswer): ProbeReport =>
  typeof answer === "string" ? { state: answer } : answer;

/** What came of undoing, where that is more than "nothing is left". */
export interface Undone {
  /** For people: the device undoes it by itself, and is not done yet. It is asked again, for as long as the step may take. */
  readonly goesOn?: string;
  /** For people: what undoing found to be done for good, so that a further try would change nothing. */
  readonly stays?: string;
  /** A patch of the machine's facts: where it is now, say. */
  readonly facts?: JsonObject;
  /** Written with the fact that the step was undone. */
  readonly effects?: readonly Effect[];
}

/**
 * A kind of step. The executor persists what `before` returns, then acts, then probes until done or the timeout; after a crash
 * it probes first. An attempt fails with `StepFailure`: "retry" takes another attempt while there are any, "fail" and
 * "intervene" end the run.
 */
export interface StepDefinition<
  K extends string,
  P extends JsonObject,
  E extends JsonObject,
  C extends Capability,
  U extends Capability = never,
  R extends JsonObject = JsonObject,
  X = OnMachine,
> extends StepShape<K, P> {
  /** Without these the step is impossible: StartRun refuses a machine whose provider lacks one. */
  readonly needs: readonly C[];
  /** Needed for some payloads, or only made use of. */
  readonly mayUse: readonly U[];
  /**
   * Which of `mayUse` nobody misses, although its endpoint is on record: all others are asked there, and then the step fails where
   * there are no credentials (`signInsOf`).
   */
  readonly goesWithout: readonly U[];
  /** Which of `mayUse` this payload cannot do without. */
  readonly alsoNeeds: (payload: P) => readonly U[];
  /** What of the server's own this payload names: it must be there when a run is started. */
  readonly refersTo: (payload: P) => readonly Reference[];
  /**
   * The payload with what the caller of StartRun gave filled in, so that it is frozen into the run; left out by kinds that take
   * nothing. Throws `AppError` for what cannot be meant, naming the param.
   */
  readonly takesParams?: (payload: P, params: Readonly<Record<string, string>>, timeoutSeconds?: number) => P;
  /** The machine boots anew in the course of it. */
  readonly reboots: boolean;
  /** Evidence from before, persisted as the step's intent before anything is done. Changes nothing. */
  before(context: StepContext<P, C, U, X>): Promise<E>;
  /**
   * What must be on record before the action begins: written with its announcement, or not at all. Reads, and changes nothing
   * itself. May be asked for again, under the same evidence, by whoever announces after a crash.
   */
  readonly announces?: (context: ActingContext<P, E, C, U, JsonObject, X>) => Promise<readonly Effect[]>;
  act(context: ActingContext<P, E, C, U, JsonObject, X>): Promise<Acted<R> | undefined>;
  /**
   * The action is a stream, and may last as long as the step: `streamOf(call)` is what `act` sends chunks with. It outlives passes
   * and renewals of the lease, and ends at the next chunk on cancel, on a stop of the process and when the lease is lost. After
   * that, as after a crash, the probe tells whether it is sent again.
   */
  readonly streams?: StreamOptions;
  /** Which payloads make the action a stream; absent: all. */
  readonly streamsFor?: (payload: P) => boolean;
  /**
   * Which parts of the receipt everybody who may see runs may see, such as the id of a job. Absent: none, since a receipt may hold
   * what only the device is to know.
   */
  readonly showsOfReceipt?: readonly (keyof R & string)[];
  /** Reads the postcondition back. Changes nothing, unless to put away what its own action needed no longer than until now. */
  probe(context: ActingContext<P, E, C, U, R, X>): Promise<ProbeAnswer>;
  /**
   * What follows the action once its probe says `halfway`. Doing it again is harmless: it is not announced, and never waited for. A
   * receipt of its own takes the place of the action's.
   */
  readonly carryOn?: (context: ActingContext<P, E, C, U, R, X>) => Promise<Acted<R> | undefined>;
  /**
   * Whether the postcondition holds although nobody acted, for adopting what people did by hand; `done` and `not_done` are all it
   * knows. Left out where the probe tells as much, or where nothing but the step's own evidence can prove it.
   */
  readonly observe?: (context: ActingContext<P, E, C, U, R, X>) => Promise<ProbeAnswer>;
  /** Undoes what a canceled or failed step left behind; best effort, and bounded by `call.signal`. */
  readonly undo?: (context: ActingContext<P, E, C, U, R, X>) => Promise<Undone | undefined>;
  /**
   * For people: what stays behind when the step was begun and is not undone; left out when nothing does. What is listed is
   * compared by it, so that other words for the same leave what is listed already in its place.
   */
  readonly residue?: (payload: P) => string;
  /** What it begins goes on inside the system, and is undone there: once another system is installed, it is no more. */
  readonly insideSystem?: true;
  /** It wants nothing of the system that runs on the machine: it may hang, or let nobody in. */
  readonly fromOutside?: true;
  /** What runs on the machine may be cut off, although the machine does not boot anew. */
  readonly interrupts?: true;
  /** It installs another system in the place of the one before, and with that ends whatever ran in there. */
  readonly replacesSystem?: true;
  /** It makes the machine a node of the cluster that its payload names (`cluster_ref`). */
  readonly joinsCluster?: true;
  /** Where a run that succeeded leads the machine when this was the last of its steps to say so. */
  readonly endsIn?: PhaseAfterRun;
  /** What it sets is for the next boot: a run that ends before a step has restarted the machine undoes it. */
  readonly forNextBoot?: true;
  /** Undoing ends it, but does not unmake what it has done until then: `residue` is listed all the same. */
  readonly undoIsPartial?: true;
  /**
   * The action touches no device: its effects are all it does. Since they commit together with the fact that the action was done, it
   * needs no announcement, and nobody waits after a crash for a device to show what it made of the action.
   */
  readonly actsByEffectsOnly?: true;
  /**
   * Once begun, the action is never let go of: a cancel probes it until it is done, has failed or its time is over, and begins nothing
   * more. Half of it would be worse than all of it, such as firmware that is being written.
   */
  readonly finishesOnceBegun?: true;
  /**
   * Where its time is over and nobody can say how the action ended, the run stays, and keeps its target, until the probe tells or a person
   * cancels it (once more, if it is being canceled already). The run that started it goes on without it.
   */
  readonly staysUntilProven?: true;
  /** The runs that it starts on other things, for those who look before they start; absent: it starts none. */
  readonly children?: (target: Thing, payload: P) => readonly NewChild[];
}

type Optional = "defaults" | "mayUse" | "goesWithout" | "alsoNeeds" | "refersTo" | "reboots";

/** A definition as it is written: what is left out takes the server's defaults, no further capabilities, no reboot. */
type Written<
  K extends string,
  P extends JsonObject,
  E extends JsonObject,
  C extends Capability,
  U extends Capability,
  R extends JsonObject,
  X,
> = Omit<StepDefinition<K, P, E, C, U, R, X>, Optional> &
  Partial<
    Pick<StepDefinition<K, P, E, C, U, R, X>, "mayUse" | "goesWithout" | "alsoNeeds" | "refersTo" | "reboots">
  > & {
    readonly defaults?: Partial<StepDefaults>;
  };

/** Declares a kind of step on machines. */
export function defineStep<
  const K extends string,
  P extends JsonObject,
  E extends JsonObject,
  const C extends Capability,
  const U extends Capability = never,
  R extends JsonObject = JsonObject,
>(definition: Written<K, P, E, C, U, R, OnMachine>): StepDefinition<K, P, E, C, U, R> {
  return defineStepOn<OnMachine>()(definition);
}

/** Declares a kind of step on other things: `defineStepOn<On<Rack>>()({ kind: … })`. */
export const defineStepOn =
  <X>() =>
  <
    const K extends string,
    P extends JsonObject,
    E extends JsonObject,
    const C extends Capability,
    const U extends Capability = never,
    R extends JsonObject = JsonObject,
  >(
    definition: Written<K, P, E, C, U, R, X>,
  ): StepDefinition<K, P, E, C, U, R, X> => ({
    mayUse: [],
    goesWithout: [],
    alsoNeeds: () => [],
    refersTo: () => [],
    reboots: false,
    ...definition,
    defaults: { ...STEP_DEFAULTS, ...definition.defaults },
  });

/** A kind whose own types nobody asks for any more: executors treat all alike, and each kind parses what it is given. */
export type AnyStep = StepDefinition<string, JsonObject, JsonObject, Capability, Capability>;

/** Kinds by their word; the types of each end here, since payload and evidence come back from the database as JSON. */
export function collectSteps(steps: readonly { readonly kind: string }[]): ReadonlyMap<string, AnyStep> {
  const byKind = new Map(steps.map((step) => [step.kind, step as unknown as AnyStep]));
  if (byKind.size !== steps.length) throw new Error("two step kinds have the same word");
  return byKind;
}

/** All capabilities without which a step with this payload is impossible. */
export function capabilitiesFor(
  step: {
    readonly needs: readonly Capability[];
    readonly alsoNeeds: (payload: JsonObject) => readonly Capability[];
  },
  payload: JsonObject,
): Capability[] {
  return [...new Set([...step.needs, ...step.alsoNeeds(payload)])];
}
