import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../kernel/log.ts";
import { type Duration, milliseconds, seconds } from "../kernel/time/duration.ts";
import type { Database } from "../store/postgres/database.ts";
import type { RestoreWatch } from "../store/restore/restore-watch.ts";

const EVERY: Duration = seconds(2);
/** While others write all the time, the newest entry is noted so often. */
const NOTED_EVERY: Duration = milliseconds(250);

/** Has the database confirm every two seconds that it is the one that it was, and notes in between what others have written. */
export class RestoreBeats {
  readonly #options: { readonly db: Database; readonly watch: RestoreWatch; readonly log: Log };
  #news = Promise.withResolvers<void>();

  constructor(options: { readonly db: Database; readonly watch: RestoreWatch; readonly log: Log }) {
    this.#options = options;
  }

  /** Somebody has written to the journal. */
  nudge(): void {
    this.#news.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { db, watch, log } = this.#options;
    let [beatAt, trouble] = [Number.NEGATIVE_INFINITY, ""];
    while (!signal.aborted) {
      try {
        const isDue = performance.now() - beatAt >= EVERY;
        if (isDue) beatAt = performance.now();
        await (isDue ? watch.beat(db) : watch.note(db));
        trouble = "";
      } catch (error) {
        const said = error instanceof Error ? error.message : String(error);
        if (said !== trouble)
          log.warn({ err: error }, "the database did not confirm what it had confirmed before; asking again");
        trouble = said;
      }
      await pause(NOTED_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
      await this.#untilNewsOr(milliseconds(Math.max(0, EVERY - (performance.now() - beatAt))), signal);
    }
  }

  async #untilNewsOr(most: Duration, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const time = pause(most, undefined, { signal: AbortSignal.any([signal, over.signal]), ref: false });
    await Promise.race([this.#news.promise, time.catch(() => undefined)]);
    over.abort();
    this.#news = Promise.withResolvers();
  }
}
