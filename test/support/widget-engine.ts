import type { CallContext } from "../../src/capabilities/call.ts";
import { Controller, type ControllerOptions } from "../../src/engine/controller.ts";
import type { EngineObserver } from "../../src/engine/observer.ts";
import { unobserved } from "../../src/engine/observer.ts";
import type { StateHandler } from "../../src/engine/pass.ts";
import { silentLog } from "../../src/kernel/log.ts";
import type { Outcome } from "../../src/kernel/outcome.ts";
import { milliseconds } from "../../src/kernel/time/duration.ts";
import type { Database } from "../../src/store/postgres/database.ts";
import { type Widget, widgetStores } from "./widget.ts";

export type WidgetHandlers = { readonly [state: string]: (widget: Widget, call: CallContext) => Promise<Outcome> };

export interface WidgetEngine {
  readonly controller: Controller;
  /** What the controller said was set aside, by id. */
  readonly quarantined: Map<string, string>;
  /** Everything handled, in order, as "id state". */
  readonly handled: string[];
  readonly leasesLost: string[];
  /** The state and the cause of each failure that was told. */
  readonly failures: string[];
  stop(): Promise<void>;
}

/** A controller of its own for the widgets of a database, woken by NOTIFY as in the real process. */
export async function startWidgetEngine(
  db: Database,
  handlers: WidgetHandlers,
  options: Partial<ControllerOptions> & { readonly deaf?: boolean } = {},
): Promise<WidgetEngine> {
  const { deaf = false, ...controllerOptions } = options;
  const stop = new AbortController();
  const quarantined = new Map<string, string>();
  const handled: string[] = [];
  const leasesLost: string[] = [];
  const failures: string[] = [];
  const observer: EngineObserver = {
    ...unobserved,
    quarantined: ({ id, error }) => quarantined.set(id, error),
    leaseLost: (kind) => leasesLost.push(kind),
    failed: ({ state, cause }) => failures.push(`${state} ${cause}`),
  };
  const handlerOf = (state: string): StateHandler | undefined => {
    const handle = handlers[state];
    return (
      handle &&
      (async (thing, { call }) => {
        handled.push(`${thing.id} ${state}`);
        return handle(thing as Widget, call);
      })
    );
  };
  const controller = new Controller({
    db,
    stores: widgetStores,
    log: silentLog,
    handlers: new Map([["widget", handlerOf]]),
    observer,
    grace: milliseconds(200),
    ...controllerOptions,
  });
  if (!deaf) await db.listen("millwright", () => controller.nudge(), stop.signal);
  const running = controller.run(stop.signal);
  return {
    controller,
    quarantined,
    handled,
    leasesLost,
    failures,
    async stop() {
      stop.abort();
      await running;
    },
  };
}
