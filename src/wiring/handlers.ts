import type { BmcTarget } from "../capabilities/bmc-target.ts";
import type { HandlerOf } from "../engine/pass.ts";
import { createBatcher } from "../kernel/batcher.ts";
import { AppError } from "../kernel/errors.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { hours } from "../kernel/time/duration.ts";
import { noCredentials } from "../store/access/no-credentials.ts";
import { type ReachedBmc, signInToBmcs } from "../store/device/bmc-credentials.ts";
import type { WiredTarget } from "./run-targets.ts";
import { allThings, storesOf } from "./things/all-things.ts";
import type { HandlerTools, ThingParts } from "./things/thing.ts";

/** Left out: the system's clock, and an hour for an attempt at a network install. */
export type HandlerWiring = Omit<HandlerTools, "signIn" | "clock" | "installTimeout" | "runTargets" | "stores"> &
  Partial<Pick<HandlerTools, "clock" | "installTimeout">>;

/** The handlers of every lifecycle, with what they need of the world around them. */
export function wireHandlers(
  wiring: HandlerWiring,
  things: readonly ThingParts[] = allThings,
): ReadonlyMap<string, HandlerOf> {
  const tools: HandlerTools = { ...commonTo(wiring, things), runTargets: wireRunTargets(wiring, things) };
  return new Map(
    things.flatMap(({ store, handlers }) => {
      const handlerOf = handlers?.(tools);
      return handlerOf ? [[store.lifecycle.kind, handlerOf] as const] : [];
    }),
  );
}

/** What runs can work on: empty where no machines are worked on. */
export function wireRunTargets(
  wiring: HandlerWiring,
  things: readonly ThingParts[] = allThings,
): readonly WiredTarget[] {
  const { runs } = wiring;
  return runs ? things.flatMap(({ runTarget }) => runTarget?.({ ...commonTo(wiring, things), runs }) ?? []) : [];
}

const commonTo = (wiring: HandlerWiring, things: readonly ThingParts[]) => ({
  stores: storesOf(things),
  clock: systemClock,
  installTimeout: hours(1),
  ...wiring,
  signIn: wireSignIn(wiring),
});

/** One query for all that ask at the same time, of whatever kind they are. */
function wireSignIn({ db, secrets }: Pick<HandlerTools, "db" | "secrets">): HandlerTools["signIn"] {
  const signIns = createBatcher<ReachedBmc, BmcTarget | AppError>({
    most: 500,
    atOnce: 2,
    run: (bmcs) => signInToBmcs(db, secrets, bmcs),
  });
  return async (target, mac) => {
    const found = await signIns.submit({ target, mac });
    if (found instanceof AppError) throw noCredentials(found, { at: "bmc" });
    return found;
  };
}
