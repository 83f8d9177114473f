import type { CauseCode } from "../kernel/causes.ts";
import type { Thing } from "../kernel/lifecycle.ts";
import type { Duration } from "../kernel/time/duration.ts";

/** What the engine tells of itself; metrics listen here, and the engine knows nothing of them. */
export interface EngineObserver {
  handled(seen: {
    kind: string;
    state: string;
    outcome: "moved" | "waiting" | "nothing" | "failed";
    took: Duration;
  }): void;
  /** `thing` is as it was before. */
  moved(seen: {
    kind: string;
    from: string;
    to: string;
    after: Duration;
    thing: Thing;
    cause?: CauseCode | undefined;
  }): void;
  /** A pass failed, or led along a failure row. */
  failed(seen: { kind: string; state: string; cause: CauseCode }): void;
  conflicted(kind: string): void;
  quarantined(seen: { kind: string; id: string; error: string }): void;
  leaseLost(kind: string): void;
}

export const unobserved: EngineObserver = {
  handled() {},
  moved() {},
  failed() {},
  conflicted() {},
  quarantined() {},
  leaseLost() {},
};
