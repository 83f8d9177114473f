import type { Told } from "../../capabilities/power-control.ts";
import { need } from "../../capabilities/provider.ts";
import type { Cause } from "../../kernel/causes.ts";
import { move } from "../../kernel/effects.ts";
import { causeOf, StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Handlers, happened, nothingToDo, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import { polling } from "../../kernel/time/retry.ts";
import {
  confirmIdentity,
  identityFacts,
  type MonitorContext,
  observeDevice,
  wasJustObserved,
} from "../device/monitoring.ts";
import { expectedPowerShelfLifecycle } from "../expected-power-shelf/lifecycle.ts";
import type { powerShelfLifecycle } from "./lifecycle.ts";
import type { PowerShelf } from "./power-shelf.ts";
import { runningRequestOf } from "./running-request.ts";

export type PowerShelfContext = MonitorContext;

const NOUN = "shelf";

/** What each state does. A handler says what happened; the table says where that leads. */
export const powerShelfHandlers: Handlers<typeof powerShelfLifecycle, PowerShelf, PowerShelfContext> = {
  async fetching_data(shelf, { provider, call, target, clock }) {
    const { power, ...can } = need(provider, ["inventory", "power"]);
    const bmc = await target();
    const inventory = await can.inventory.readInventory(bmc, call);
    const { identity } = inventory;
    confirmIdentity(shelf, NOUN, bmc, identity);
    if (inventory.powerSupplies.length === 0)
      throw new StepFailure(
        "wrong_identity",
        `the BMC at ${bmc.address} shows no power supplies, so it is not the BMC of a power shelf: check the address`,
        { facts: { at: "bmc", address: bmc.address } },
      );
    return happened("data_fetched", {
      facts: {
        ...identityFacts(inventory),
        capacityWatts: inventory.capacityWatts,
        voltage: inventory.voltage,
        powerSupplies: inventory.powerSupplies.map((supply) => ({ ...supply })),
        powerState: await power.readPower(bmc, call),
        observedAt: clock.now().toISOString(),
      },
    });
  },

  /** Credentials are proven by a signed-in read; the first health reading registers the shelf for monitoring. */
  async configuring(shelf, context) {
    return happened("configured", { facts: await observe(shelf, context) });
  },

  /** Monitoring: what changed outside is noticed here. A shelf that does not answer stays ready, and says so. */
  async ready(shelf, context) {
    if (wasJustObserved(shelf, context.clock)) return nothingToDo(context.monitorEvery);
    return nothingToDo(context.monitorEvery, { facts: await observe(shelf, context) });
  },

  /** An errored shelf is still watched, so that the operator sees what it does. */
  async error(shelf, context) {
    return nothingToDo(context.monitorEvery, { facts: await observe(shelf, context) });
  },

  async maintenance(shelf, context) {
    const { provider, call, target, clock } = context;
    const { cancelRequest } = shelf.facts;
    // Before anything is sent: a shelf that cannot be reached can be canceled as well.
    if (cancelRequest !== null && cancelRequest.requestId === runningRequestOf(shelf))
      return happened("operation_canceled", { message: canceledBy(cancelRequest.by, shelf) });
    const { power, inventory } = need(provider, ["power", "inventory"]);
    const desired = shelf.state.operation === "power_on" ? "on" : "off"; // what was carried in, not what may have been asked since
    const bmc = await target();
    confirmIdentity(shelf, NOUN, bmc, await inventory.identify(bmc, call)); // addresses move: never switch somebody else's shelf
    const { commanded } = await power.setPower(bmc, desired, call, toldBefore(shelf));
    const told: JsonObject = commanded ? { commandedAt: commandOf(shelf, clock.now()) } : {};
    const seen = await power.readPower(bmc, call).catch((error: unknown) => {
      if (!commanded || !(error instanceof StepFailure)) throw error;
      return error; // that the shelf has been told must be kept, or whoever carries on would tell it again
    });
    if (seen instanceof StepFailure)
      return waitFor(
        `shelf was commanded to power ${desired}, but could not be read since: ${seen.message}`,
        pollAfter(shelf, clock),
        { facts: told, cause: causeOf(seen) },
      );
    const facts = { powerState: seen, observedAt: clock.now().toISOString() };
    if (seen !== desired) {
      const news = seen === shelf.facts.powerState ? {} : facts; // a poll that saw nothing new is no reason to write
      const reason = `shelf reports power ${seen}, wanted ${desired}`;
      // A meter that contradicts the BMC is a fault at once; a shelf that shows nothing yet may only take its time.
      const code = seen === "unknown" ? "meter_contradicts" : "no_effect";
      const cause: Cause = { code, facts: { at: "bmc", progress: seen } };
      return waitFor(reason, pollAfter(shelf, clock), { facts: { ...news, ...told }, cause });
    }
    // What else changed with the power is told at once; that it could not be read takes nothing from the success.
    const rest = await observe(shelf, context).catch((error: unknown) => {
      if (error instanceof StepFailure) return {};
      throw error;
    });
    return happened("operation_completed", { facts: { ...rest, ...facts } });
  },

  /** Its expected row is detached in the same commit, so that the explorer does not bring the shelf back. */
  async deleting({ expectedId }) {
    return happened("removed", {
      effects: expectedId === null ? [] : [move(expectedPowerShelfLifecycle, expectedId, "power_shelf_deleted")],
    });
  },
};

const requestIdOf = (shelf: PowerShelf): string | null => runningRequestOf(shelf) ?? null;

/** What was on its way when the cancel came may not be on record: only the shelf knows. */
const canceledBy = (by: string, { state: { operation } }: PowerShelf): string =>
  `canceled by ${by}; a ${operation ?? "command"} that was already sent may still take effect`;

const commandOf = (shelf: PowerShelf, at: Date): JsonObject => ({
  operation: shelf.state.operation ?? null,
  requestId: requestIdOf(shelf),
  at: at.toISOString(),
});

/** When this very request's command was accepted, by whichever replica; that of another request says nothing. */
function toldBefore(shelf: PowerShelf): Told | undefined {
  const { commandedAt } = shelf.facts;
  if (commandedAt === null || commandedAt.operation !== shelf.state.operation) return undefined;
  return commandedAt.requestId === requestIdOf(shelf) ? { at: new Date(commandedAt.at) } : undefined;
}

/** Often at first, ever less often the longer it takes: 0.2 s growing to 10 s. */
function pollAfter(shelf: PowerShelf, clock: Clock): Duration {
  const waited = clock.now().getTime() - shelf.stateSince.getTime();
  return milliseconds(Math.min(Math.max(waited / 4, polling.first), polling.most));
}

const observe = (shelf: PowerShelf, context: PowerShelfContext): Promise<JsonObject> =>
  observeDevice(shelf, context, NOUN, ({ powerSupplies, capacityWatts, voltage }) => ({
    powerSupplies: powerSupplies.map((supply) => ({ ...supply })),
    // A shelf that is off says nothing of either, and is no other shelf for that.
    capacityWatts: capacityWatts ?? shelf.facts.capacityWatts,
    voltage: steadyVoltage(shelf.facts.voltage, voltage),
  }));

/** It is measured, so it never stays the same; only a real change is news. */
function steadyVoltage(known: number | null, seen: number | null): number | null {
  if (known === null || seen === null) return seen ?? known;
  return Math.abs(seen - known) > known * 0.05 ? seen : known;
}
