import { AppError } from "../../kernel/errors.ts";
import { unlessAborted } from "../../kernel/time/unless-aborted.ts";

/** Of one installation at the same time: an installer reports once, and again where the answer was lost. */
const MOST_WAITING = 8;
/** An installer that is over sooner than its run has freed the boot source would run again, on a BMC that keeps the medium. */
const LONGEST_HOLD_MS = 5_000;
const HOLD_CHECK_MS = 100;

export interface HoldOrder {
  /** Who waits for the same waits together. */
  readonly key: string;
  /** Called once for all who wait together. */
  note(): Promise<void>;
  isFree(): Promise<boolean>;
  /** Of the one who waits. */
  readonly signal: AbortSignal;
}

/** Installers that reported, and wait until a restart does not lead to their medium again. */
export interface BootHolds {
  /**
   * Ends when it is free, or that takes too long, or the one who waits has left.
   *
   * @throws AppError "exhausted" when too many wait for the same.
   */
  wait(order: HoldOrder): Promise<void>;
}

interface Hold {
  waiting: number;
  readonly noted: Promise<void>;
  readonly free: Promise<void>;
}

export function createBootHolds(): BootHolds {
  const holds = new Map<string, Hold>();

  function begin({ key, note, isFree }: HoldOrder): Hold {
    const noted = note();
    const hold: Hold = { waiting: 0, noted, free: noted.then(() => untilFree(() => hold.waiting > 0, isFree)) };
    hold.free.catch(() => undefined);
    holds.set(key, hold);
    return hold;
  }

  return {
    async wait(order) {
      const { key, signal } = order;
      const hold = holds.get(key) ?? begin(order);
      if (hold.waiting >= MOST_WAITING)
        throw new AppError("exhausted", `${MOST_WAITING} installers wait already for the boot source of this run`);
      hold.waiting += 1;
      const over = new AbortController();
      const leave = () => over.abort();
      signal.addEventListener("abort", leave, { once: true });
      let longest: NodeJS.Timeout | undefined;
      try {
        if (signal.aborted) return;
        await unlessAborted(hold.noted, over.signal);
        longest = setTimeout(leave, LONGEST_HOLD_MS);
        await unlessAborted(hold.free, over.signal);
      } catch (error) {
        if (!over.signal.aborted) throw error;
      } finally {
        clearTimeout(longest);
        signal.removeEventListener("abort", leave);
        hold.waiting -= 1;
        if (hold.waiting === 0 && holds.get(key) === hold) holds.delete(key);
      }
    },
  };
}

/** For as long as somebody waits. */
async function untilFree(isAwaited: () => boolean, isFree: () => Promise<boolean>): Promise<void> {
  while (isAwaited() && !(await isFree())) await new Promise((resolve) => setTimeout(resolve, HOLD_CHECK_MS));
}
