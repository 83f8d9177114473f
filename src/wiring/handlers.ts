import type { BmcTarget, TlsTrust } from "../capabilities/bmc-target.ts";
import type { Provider } from "../capabilities/provider.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { HandlerOf, StateHandler } from "../engine/look.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import type { Duration } from "../kernel/duration.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Thing } from "../kernel/lifecycle.ts";
import type { Outcome } from "../kernel/outcome.ts";
import type { ExpectedPowerShelf } from "../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import { type ExplorerContext, expectedPowerShelfHandlers } from "../lifecycles/expected-power-shelf/handlers.ts";
import { type PowerShelfContext, powerShelfHandlers } from "../lifecycles/power-shelf/handlers.ts";
import type { PowerShelf } from "../lifecycles/power-shelf/power-shelf.ts";
import { type BmcCredentials, getBmcCredentials } from "../store/bmc-credentials.ts";
import type { Database } from "../store/database.ts";
import type { SecretStore } from "../store/secrets.ts";

export interface HandlerWiring {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly provider: Provider;
  readonly monitorEvery: Duration;
  readonly exploreEvery: Duration;
  readonly clock?: Clock;
}

/** The handlers of every lifecycle, with what they need of the world around them. */
export function wireHandlers({
  db,
  secrets,
  provider,
  monitorEvery,
  exploreEvery,
  clock = systemClock,
}: HandlerWiring): ReadonlyMap<string, HandlerOf> {
  const credentials = createBatcher<string, BmcCredentials | AppError>({
    most: 500,
    atOnce: 2,
    run: (macs) => getBmcCredentials(db, secrets, macs),
  });
  const signIn = async (bmc: Omit<BmcTarget, "username" | "password">, mac: string): Promise<BmcTarget> => {
    const found = await credentials.submit(mac);
    if (found instanceof AppError) throw new StepFailure("fail", found.message);
    return { ...bmc, ...found };
  };

  const shelfContext = (shelf: PowerShelf): Omit<PowerShelfContext, "call"> => ({
    provider,
    clock,
    monitorEvery,
    target: () => signIn({ ...shelf.bmc, trust: trustOf(shelf) }, shelf.bmc.mac),
  });
  const explorerContext = ({ bmc }: ExpectedPowerShelf): Omit<ExplorerContext, "call"> => ({
    provider,
    clock,
    exploreEvery,
    target: () =>
      signIn({ address: bmc.address ?? "", port: bmc.port ?? 443, scheme: "https", trust: { mode: "pin" } }, bmc.mac),
  });
  return new Map([
    ["power_shelf", withContext(powerShelfHandlers, shelfContext)],
    ["expected_power_shelf", withContext(expectedPowerShelfHandlers, explorerContext)],
  ]);
}

function trustOf({ bmc, facts }: PowerShelf): TlsTrust {
  if (bmc.trust !== "pin") return { mode: bmc.trust };
  return {
    mode: "pin",
    ...(facts.certificateFingerprint !== null && { fingerprint256: facts.certificateFingerprint }),
  };
}

/** The engine treats all kinds alike: here the kind's own types are put back on. */
function withContext<T extends Thing, C>(
  handlers: { readonly [state: string]: ((thing: T, context: C) => Promise<Outcome>) | undefined },
  contextOf: (thing: T) => Omit<C, "call">,
): HandlerOf {
  return (state) => {
    const handler = handlers[state];
    if (!handler) return undefined;
    const wired: StateHandler = (thing, { call }) => handler(thing as T, { ...contextOf(thing as T), call } as C);
    return wired;
  };
}
