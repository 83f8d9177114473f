import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import type { StartedProcess } from "./process-bench.ts";

/** What the pass is about in which a replica dies, by what was on record when it began, and at which fail point. */
export interface Place<P extends string = string> {
  readonly position: P;
  readonly failPoint: string;
}

/** A pass that lasts is written before the run goes on: on a slow computer runs would come by other places than on a fast one. */
export const NO_PASS_LASTS: Clock = { ...systemClock, monotonic: () => 0 };

/** In a process that dies at a place, or comes through all of them and prints which there were. */
export class PlacesPassed {
  /** Outside of every pass. */
  position = "asking";
  readonly #passed = new Set<string>();

  constructor(place: Place | undefined) {
    watchFailPoints((failPoint, subjects) => {
      if (failPoint.endsWith(":claimed") && subjects.length === 0) return; // it asked, and there was nothing
      this.#passed.add(JSON.stringify({ position: this.position, failPoint } satisfies Place));
      if (place?.position === this.position && place.failPoint === failPoint) die();
      if (failPoint === "committer:after") this.position = "between";
    });
  }

  /** Handlers during which the position is that of their thing. */
  around =
    (positionOf: (thing: Thing) => string) =>
    (handlers: HandlerOf): HandlerOf =>
    (state) => {
      const handler = handlers(state);
      return (
        handler &&
        (async (thing: Thing, frame) => {
          this.position = positionOf(thing);
          return handler(thing, frame);
        })
      );
    };

  print(): void {
    process.stdout.write(`${JSON.stringify([...this.#passed].map((text) => JSON.parse(text) as Place))}\n`);
  }
}

/** What a process that nobody killed came through. */
export async function placesOf<P extends string>(undisturbed: StartedProcess): Promise<Place<P>[]> {
  const exit = await undisturbed.exited;
  if (exit.code !== 0) throw new Error(`it came to no end\n${undisturbed.transcript()}`);
  return JSON.parse(undisturbed.stdout()) as Place<P>[];
}

/** Whether it died there; it may have come to its end without having come by. */
export async function diedAt({ position, failPoint }: Place, victim: StartedProcess): Promise<boolean> {
  const exit = await victim.exited;
  if (exit.code === 0) return false;
  if (exit.signal === "SIGKILL") return true;
  throw new Error(`it did not die at ${failPoint} (${position}): ${victim.transcript()}`);
}

/** What a dead replica left is set aside, so that the next one has only its own. */
export const setAside = (db: Database): Promise<unknown> =>
  db.execute(
    `update work set wake_at = 'infinity', lease_until = case when lease_until is null then null else 'infinity'::timestamptz end`,
  );

/** As if the time of all leases had passed. */
export const letGoOn = (db: Database): Promise<unknown> =>
  db.execute(
    `update work set wake_at = now(), lease_until = case when lease_until is null then null else now() - interval '1 s' end
      where wake_at = 'infinity' or lease_until = 'infinity'`,
  );
