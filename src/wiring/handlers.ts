import type { HandlerOf } from "../engine/pass.ts";
import { createBatcher } from "../kernel/batcher.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { hours } from "../kernel/time/duration.ts";
import { type BmcCredentials, getBmcCredentials } from "../store/device/bmc-credentials.ts";
import { allThings } from "./things/all-things.ts";
import type { HandlerTools, ThingParts } from "./things/thing.ts";

/** Left out: the system's clock, and an hour for an attempt at a network install. */
export type HandlerWiring = Omit<HandlerTools, "signIn" | "clock" | "installTimeout" | "runTargets"> &
  Partial<Pick<HandlerTools, "clock" | "installTimeout">>;

/** The handlers of every lifecycle, with what they need of the world around them. */
export function wireHandlers(
  wiring: HandlerWiring,
  things: readonly ThingParts[] = allThings,
): ReadonlyMap<string, HandlerOf> {
  const common = { clock: systemClock, installTimeout: hours(1), ...wiring, signIn: wireSignIn(wiring) };
  const { runs } = common;
  const runTargets = runs ? things.flatMap(({ runTarget }) => runTarget?.({ ...common, runs }) ?? []) : [];
  const tools: HandlerTools = { ...common, runTargets };
  return new Map(
    things.flatMap(({ store, handlers }) => {
      const handlerOf = handlers?.(tools);
      return handlerOf ? [[store.lifecycle.kind, handlerOf] as const] : [];
    }),
  );
}

/** One query for all that ask at the same time, of whatever kind they are. */
function wireSignIn({ db, secrets }: Pick<HandlerTools, "db" | "secrets">): HandlerTools["signIn"] {
  const credentials = createBatcher<string, BmcCredentials | AppError>({
    most: 500,
    atOnce: 2,
    run: (macs) => getBmcCredentials(db, secrets, macs),
  });
  return async (bmc, mac) => {
    const found = await credentials.submit(mac);
    if (found instanceof AppError)
      throw new StepFailure("credentials_missing", found.message, { facts: { at: "bmc" } });
    return { ...bmc, ...found };
  };
}
