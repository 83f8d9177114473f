import { beforeEach, expect, test } from "vitest";
import { retryable } from "../../../test/support/failures.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { mayHaveArrived, PowerCommands } from "./power-commands.ts";

let passed: number;
let commands: PowerCommands;
const clock: Clock = { now: () => new Date(1_000_000 + passed), monotonic: () => passed };
const isAwaited = (desired: "on" | "off", toldAgo?: number) =>
  commands.isAwaited(
    "bmc",
    desired,
    toldAgo === undefined ? undefined : { at: new Date(clock.now().getTime() - toldAgo) },
  );

beforeEach(() => {
  passed = 0;
  commands = new PowerCommands(clock, seconds(20));
});

test("a command is awaited for as long as it is given, and only for the state that it asked for", () => {
  expect(isAwaited("off")).toBe(false);
  commands.note("bmc", "off");
  passed = 19_999;
  expect([isAwaited("off"), isAwaited("on")]).toEqual([true, false]);
  passed = 20_000;
  expect(isAwaited("off")).toBe(false);
});

test("one whose answer was lost may be given less", () => {
  commands.note("bmc", "off", seconds(5));
  passed = 5_000;
  expect(isAwaited("off")).toBe(false);
});

test("a state that was reached and undone is asked for again", () => {
  commands.note("bmc", "off");
  commands.forget("bmc");
  expect(isAwaited("off")).toBe(false);
});

test("what another process was told a moment ago is awaited, also when its clock is ahead", () => {
  expect([isAwaited("off", 19_999), isAwaited("off", -19_999)]).toEqual([true, true]);
  expect([isAwaited("off", 20_000), isAwaited("off", -20_000)]).toEqual([false, false]);
});

test.each([
  [new DeviceFailure("unreachable", "bmc", "cut off"), true],
  [new DeviceFailure("busy", "bmc", "half done", { status: 503 }), true],
  [retryable("stopped"), true],
  [new DeviceFailure("busy", "bmc", "locked", { status: 409 }), false],
  [new DeviceFailure("busy", "bmc", "too many", { status: 429 }), false],
  [new DeviceFailure("refused_by_device", "bmc", "no", { status: 400 }), false],
  [new Error("a bug"), false],
])("of a command that ended with %s it is %s that it may have arrived", (error, expected) => {
  expect(mayHaveArrived(error)).toBe(expected);
});
