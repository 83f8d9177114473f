import { expect, test } from "vitest";
import { aFleetNode } from "../../../test/support/fleet/fleet-node.ts";
import { happened, nothingToDo, waitFor } from "../../kernel/outcome.ts";
import { hours, minutes } from "../../kernel/time/duration.ts";
import { fleetNodeHandlers } from "./handlers.ts";

const NOW = new Date("2026-11-18T09:00:00Z");
const context = { clock: { now: () => NOW, monotonic: () => 0 } };
const issued = (expiresAt: string) =>
  aFleetNode("bootstrap_issued", { enrollment: { issue: 1, tokenHash: "", expiresAt, consumedAt: null } });

test("a bundle that nobody used leads by way of enrolling to quarantined, in one outcome", async () => {
  expect(await fleetNodeHandlers.bootstrap_issued(issued("2026-11-18T09:10:00Z"), context)).toEqual(
    waitFor("its agent enrols with the token of the bundle", minutes(10)),
  );
  const message = "nobody enrolled before the bootstrap bundle expired";
  expect(await fleetNodeHandlers.bootstrap_issued(issued("2026-11-18T09:00:00Z"), context)).toEqual(
    happened("bundle_expired", { message, followedBy: [{ event: "bundle_expired", message }] }),
  );
});

test.each(["enrolling", "draining", "removing"] as const)(
  "a node that is %s, which its job moves, has a pass that is due: the sweep does not take it for stranded",
  async (state) => {
    expect(await fleetNodeHandlers[state]?.(aFleetNode(state), context)).toEqual(nothingToDo(hours(1)));
  },
);
