import { expect, test } from "vitest";
import type { ExistingDevice } from "../../lifecycles/expected-device/expected-device.ts";
import type { ExpectedPowerShelf } from "../../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import { explorerTarget } from "./device-target.ts";

const expected = (
  certificateFingerprint: string | null,
  existing: Partial<ExistingDevice> | null = null,
): ExpectedPowerShelf => ({
  id: "expected-1",
  version: 1,
  basis: 1,
  state: { name: "exploring" },
  stateSince: new Date(0),
  stateVersion: 1,
  outcome: null,
  bmc: { mac: "02:00:5e:10:00:01", address: "127.1.0.1", port: 8443 },
  serial: "SN1",
  name: "",
  description: "",
  labels: {},
  rackId: null,
  facts: { explored: null, exploredAt: null, certificateFingerprint },
  deviceId: null,
  existing: existing && {
    id: "shelf-by-hand",
    serial: null,
    scheme: "https",
    trust: "pin",
    certificateFingerprint: null,
    markedForDeletion: false,
    ...existing,
  },
});

test("the explorer takes the first certificate that it sees, and from then on only that one", () => {
  const place = { address: "127.1.0.1", port: 8443, scheme: "https" };
  expect(explorerTarget(expected(null))).toEqual({ ...place, trust: { mode: "pin" } });
  expect(explorerTarget(expected("AA"))).toEqual({ ...place, trust: { mode: "pin", fingerprint256: "AA" } });
});

test("it trusts a shelf that is on record as that is trusted", () => {
  expect(explorerTarget(expected("AA", { certificateFingerprint: "BB" })).trust).toEqual({
    mode: "pin",
    fingerprint256: "BB",
  });
  expect(explorerTarget(expected("AA", {})).trust).toEqual({ mode: "pin", fingerprint256: "AA" });
  expect(explorerTarget(expected("AA", { trust: "ca", certificateFingerprint: "BB" })).trust).toEqual({ mode: "ca" });
  expect(explorerTarget(expected(null, { scheme: "http", trust: "off" }))).toMatchObject({
    scheme: "http",
    trust: { mode: "off" },
  });
});
