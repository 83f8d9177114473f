import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";

/** What a fake machine takes its time for. */
const FAKE_OPERATIONS = ["netboot", "reboot", "repave", "mint_join", "join", "verify", "rma", "ssh"] as const;
export type FakeOperation = (typeof FAKE_OPERATIONS)[number];

/** What can be told to fail. */
export const FAKE_FAILURES = ["netboot", "reboot", "repave", "join", "verify", "rma"] as const;
export type FakeFailure = (typeof FAKE_FAILURES)[number];

const FAKE_SPEEDS = ["default", "slow", "instant"] as const;
export type FakeSpeed = (typeof FAKE_SPEEDS)[number];

/** The specification's table of the fake provider; "instant" is for measuring everything but hardware. */
export const FAKE_DURATIONS: Readonly<Record<FakeSpeed, Readonly<Record<FakeOperation, Duration>>>> = {
  default: {
    netboot: milliseconds(250),
    reboot: milliseconds(500),
    repave: seconds(1),
    mint_join: milliseconds(100),
    join: seconds(1),
    verify: milliseconds(500),
    rma: milliseconds(250),
    ssh: seconds(1),
  },
  slow: {
    netboot: seconds(2),
    reboot: seconds(5),
    repave: seconds(10),
    mint_join: milliseconds(500),
    join: seconds(8),
    verify: seconds(3),
    rma: seconds(2),
    ssh: seconds(1),
  },
  instant: {
    netboot: milliseconds(0),
    reboot: milliseconds(0),
    repave: milliseconds(0),
    mint_join: milliseconds(0),
    join: milliseconds(0),
    verify: milliseconds(0),
    rma: milliseconds(0),
    ssh: milliseconds(0),
  },
};
