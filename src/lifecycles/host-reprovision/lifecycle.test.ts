import { describe, expect, test } from "vitest";
import { follow } from "../../kernel/decide.ts";
import type { HostReprovision } from "./host-reprovision.ts";
import { hostReprovisionLifecycle } from "./lifecycle.ts";

/** As the specification draws it, then what we added. */
const SPECIFIED = [
  ["ready", "other rack_requested", "waiting_for_rack_firmware_upgrade"],
  ["ready", "handler own_upgrade_begun", "checking_firmware_v2"],
  ["checking_firmware_v2", "other firmware_proven", "ready"],
  ["checking_firmware_v2", "other firmware_failed", "failed_firmware_upgrade"],
  ["waiting_for_rack_firmware_upgrade", "other firmware_proven", "ready"],
  ["waiting_for_rack_firmware_upgrade", "other firmware_failed", "failed_firmware_upgrade"],
  ["waiting_for_rack_firmware_upgrade", "other rack_ended", "ready"],
  ["waiting_for_rack_firmware_upgrade", "handler own_upgrade_begun", "checking_firmware_v2"],
  ["failed_firmware_upgrade", "other rack_requested", "waiting_for_rack_firmware_upgrade"],
  ["failed_firmware_upgrade", "handler own_upgrade_begun", "checking_firmware_v2"],
];
const ADDED = [
  ["ready", "handler upgrade_skipped", "(stay)"],
  ["ready", "other expired", "(gone)"],
  ["checking_firmware_v2", "handler run_lost", "failed_firmware_upgrade"],
  ["failed_firmware_upgrade", "other firmware_proven", "ready"],
  ["failed_firmware_upgrade", "handler upgrade_skipped", "(stay)"],
  ["failed_firmware_upgrade", "handler retries_exhausted", "(stay)"],
];

test("the table is the specified one, and what was added says why", () => {
  const rows = hostReprovisionLifecycle.transitions.map(([from, { owner, name }, to, options]) => ({
    row: [from, `${owner} ${name}`, to],
    isAdded: options !== undefined && "added" in options,
  }));
  expect(rows.filter(({ isAdded }) => !isAdded).map(({ row }) => row)).toEqual(SPECIFIED);
  expect(rows.filter(({ isAdded }) => isAdded).map(({ row }) => row)).toEqual(ADDED);
});

const host = (name: string, facts: Partial<HostReprovision["facts"]> = {}): HostReprovision => ({
  id: "m1",
  version: 1,
  basis: 1,
  state: { name, request: { id: "r1" } },
  stateSince: new Date(0),
  stateVersion: 1,
  outcome: null,
  machine: null,
  assigned: "no",
  firmware: null,
  firmwareClass: "prod",
  reprovisionRequest: null,
  facts: { retryCount: 3, reportedAt: null, exhausted: true, ...facts },
});
const other = (name: string, data = {}) => ({ owner: "other", name, data }) as const;

describe("retries", () => {
  test("count from one when the rack asks, and from what the handler says when the tray does", () => {
    expect(
      follow(hostReprovisionLifecycle, host("failed_firmware_upgrade"), other("rack_requested", { rack: "r" })),
    ).toMatchObject({
      to: "waiting_for_rack_firmware_upgrade",
      carried: { rack: "r" },
      facts: { retryCount: 1, exhausted: false },
    });
    const own = {
      owner: "handler",
      name: "own_upgrade_begun",
      data: { retry: 4, run: "run-1", request: null },
    } as const;
    expect(follow(hostReprovisionLifecycle, host("failed_firmware_upgrade"), own)).toMatchObject({
      carried: { run: "run-1" },
      facts: { retryCount: 4, exhausted: false },
    });
  });

  test("begin again once the firmware is proven", () => {
    expect(follow(hostReprovisionLifecycle, host("checking_firmware_v2"), other("firmware_proven"))).toMatchObject({
      to: "ready",
      facts: { retryCount: 0, exhausted: false },
      ends: [{ field: "reprovisionRequest", outcome: "completed" }],
    });
  });
});

test("a failed upgrade says why and when, and ends its request as failed", () => {
  const data = { at: "2026-01-02T03:04:05.000Z", failure: { code: "firmware_not_applied" } };
  const failed = { ...other("firmware_failed", data), message: "bmc shows 1.0" };
  expect(follow(hostReprovisionLifecycle, host("checking_firmware_v2"), failed)).toMatchObject({
    to: "failed_firmware_upgrade",
    carried: { cause: "bmc shows 1.0", failure: { code: "firmware_not_applied" } },
    facts: { reportedAt: "2026-01-02T03:04:05.000Z" },
    ends: [{ field: "reprovisionRequest", outcome: "failed" }],
  });
});
