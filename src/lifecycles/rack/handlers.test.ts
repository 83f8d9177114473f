import { expect, test } from "vitest";
import { wholeRack } from "../../../test/support/racks/whole-rack.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import { type RackContext, rackHandlers } from "./handlers.ts";
import type { Rack } from "./rack.ts";

const since = new Date("2026-01-01T00:00:00Z");
const context = (now: Date) => ({ clock: { now: () => now, monotonic: () => 0 } }) as unknown as RackContext;
const after = (ms: number) => new Date(since.getTime() + ms);

test("a rack asks often for what is missing in its first minute, and seldom from then on", async () => {
  const rack: Rack = wholeRack("discovering", { stateSince: since });
  const [tray] = rack.trays;
  const unready = { ...rack, trays: tray ? [{ ...tray, ready: false }] : [] };
  const recheck = (now: Date) => rackHandlers.discovering(unready, context(now));
  expect(await recheck(after(59_000))).toMatchObject({ type: "waiting", after: seconds(3) });
  expect(await recheck(after(minutes(1)))).toMatchObject({ type: "waiting", after: seconds(15) });
});

test("a rack that has lost its run lets go of its devices", async () => {
  const workSet = {
    machines: ["m1"],
    switches: ["sw1"],
    shelves: [],
    leftOut: [],
    firmware: null,
    fabric: true,
    isOff: false,
    barsForMs: 0,
  };
  const rack = wholeRack(
    "maintenance",
    { facts: { topology: null, hasValidated: true, failedByItself: false, workSet }, related: { run: null } },
    { run: "run-1" },
  );
  expect(await rackHandlers.maintenance(rack, context(since))).toMatchObject({
    event: "run_lost",
    effects: [
      { kind: "switch", id: "sw1", cause: "rack_ended" },
      { kind: "host_reprovision", id: "m1", cause: "rack_ended" },
    ],
  });
});
