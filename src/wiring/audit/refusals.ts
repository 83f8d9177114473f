import type { AccessLine } from "../../api/transport/access/access-log.ts";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { RefusalBook } from "../../services/audit/refusal-book.ts";
import { countRefusedCalls, type Refusal } from "../../store/access/refused-calls.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { Metrics } from "../../telemetry/metrics.ts";

/** By what a line of the access log says of a call's end, over gRPC, JSON and REST. */
const REFUSAL_OF: Readonly<Record<string, Refusal>> = {
  unauthenticated: "sign_in_failed",
  401: "sign_in_failed",
  permission_denied: "refused",
  403: "refused",
};

/** Counts who is not let in. `stop` writes what is still in hand. */
export function startRefusals(deps: {
  readonly db: Database;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
}): { readonly onAccess: (line: AccessLine) => void; stop(): Promise<void> } {
  const { db, log, clock, metrics } = deps;
  const book = new RefusalBook({ clock, log, write: (counted) => countRefusedCalls(db, counted) });
  const stopping = new AbortController();
  const running = book.run(stopping.signal);
  return {
    onAccess({ code, method, address, caller: name }) {
      const outcome = REFUSAL_OF[code];
      if (outcome === undefined) return;
      metrics.count("millwright_calls_refused_total", { outcome });
      book.note({ address, name, method, outcome });
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
