import type { OpenStream, StreamEnd, StreamOptions, StreamProgress } from "../../../capabilities/stream.ts";
import { causeOf, StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { type Duration, milliseconds, seconds } from "../../../kernel/time/duration.ts";
import { polling } from "../../../kernel/time/retry.ts";
import type { Step } from "../../model/plan/plan.ts";
import type { Acted, ActingContext, AnyStep, LogStream } from "../../model/step.ts";
import { StillOpen } from "../failure-causes.ts";
import type { RunContext } from "../run-context.ts";
import * as visits from "./visit.ts";
import { type PassOutcome, pollAfter, type Saved, save, type Work } from "./work.ts";

/** A run whose action is a stream: what the passes do while it goes on. */

/** Progress is an event that all who watch get: every second at first, every ten seconds later. */
const FIRST_PROGRESS: Duration = seconds(1);
const ROOM_RECHECK: Duration = seconds(5);

type Line = readonly [text: string | Uint8Array, stream: LogStream];

/** What an action says while no pass is there to write it: the next one does. */
const unsaid = new WeakMap<OpenStream, Line[]>();

/** Begins the action and returns at once. */
export async function openStream(
  { context }: Work,
  kind: AnyStep,
  options: StreamOptions,
  acting: ActingContext<JsonObject, JsonObject>,
): Promise<OpenStream<Acted | undefined>> {
  const { streams } = context.call;
  if (!streams) throw new Error(`${kind.kind} is a stream, and there is no lease to hold it under`);
  const lines: Line[] = [];
  const stream = await streams.open(options, (call) =>
    kind.act({ ...acting, call, log: (text, name = "stdout") => void lines.push([text, name]) }),
  );
  unsaid.set(stream, lines);
  return stream;
}

/** How it ended; while it goes on, what the pass comes to. */
export async function checkStream(
  work: Work,
  stream: OpenStream,
  { staysUntilProven }: Pick<AnyStep, "staysUntilProven">,
): Promise<StreamEnd | PassOutcome> {
  const { step, visit, context, log } = work;
  const end = stream.take();
  for (const [text, name] of unsaid.get(stream)?.splice(0) ?? []) log.say(text, name);
  if (end !== undefined) return end;
  const message = describeProgress(stream.progress);
  const left = visits.timeLeft(visit, step, context.clock);
  if (left === 0) {
    const late = new StillOpen({ code: "not_done_in_time" }, visits.overdueMessage(step, message));
    await stop(stream, late);
    if (staysUntilProven !== true) throw late;
    // The device may be at it. Whoever asks next finds the time over, and lets go of nothing that is not proven.
    const sent = visits.streaming(visit, context.clock.now(), message);
    const open = visits.unanswered(sent, late.message, causeOf(late));
    return save(work, open, { reason: `${step.name}: ${late.message}`, after: polling.first });
  }
  const after = milliseconds(Math.min(left, Math.max(FIRST_PROGRESS, pollAfter(visit.actingAt, context.clock))));
  const going = visits.streaming(visit, context.clock.now(), message);
  return save(work, going, { reason: `${step.name}: ${message}`, after });
}

/** Before anything else is done to the device. */
export async function endStream({ call }: RunContext, why: string): Promise<void> {
  const stream = call.streams?.underWay;
  if (stream !== undefined && stream.take() === undefined) await stop(stream, new StepFailure("stopped", why));
}

async function stop(stream: OpenStream, reason: Error): Promise<void> {
  await stream.stop(reason);
  stream.take();
}

export const noRoomForStream = ({ name }: Step): Saved => ({
  reason: `${name}: waits until another stream of this replica has ended`,
  after: ROOM_RECHECK,
});

const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** Exported for its test. */
export function describeProgress(progress: StreamProgress | undefined): string {
  if (progress === undefined) return "sending";
  const { bytes, of } = progress;
  if (of === undefined) return `sent ${describeBytes(bytes)}`;
  const percent = of === 0 ? 100 : Math.floor((100 * bytes) / of);
  return `sent ${describeBytes(bytes)} of ${describeBytes(of)} (${percent} %)`;
}

function describeBytes(bytes: number): string {
  const power = bytes < 1_000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}
