import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { final } from "../../../test/support/failures.ts";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { type DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import type { DeviceIdentity, Inventory } from "../../capabilities/inventory.ts";
import type { Cause } from "../../kernel/causes.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import { seconds } from "../../kernel/time/duration.ts";
import type { ExistingDevice, ExploreResult } from "../expected-device/expected-device.ts";
import { deviceIdOf, filledIn } from "../expected-device/explorer.ts";
import type { ExpectedPowerShelf } from "./expected-power-shelf.ts";
import { expectedPowerShelfHandlers, exploredPowerShelf } from "./handlers.ts";

const powerShelfIdOf = (named: Parameters<typeof deviceIdOf>[1]) => deviceIdOf(exploredPowerShelf, named);

const NOW = new Date("2026-01-02T03:04:05.678Z");
const identity = {
  serial: "SN1",
  vendor: "Lite-On",
  model: "PS-1",
  certificateFingerprint: "AB:CD",
} as const satisfies DeviceIdentity;
const byHand: ExistingDevice = {
  id: "shelf-by-hand",
  serial: "SN1",
  scheme: "https",
  trust: "pin",
  certificateFingerprint: null,
  markedForDeletion: false,
};
const bmc: BmcTarget = {
  address: "127.1.0.1",
  port: 8443,
  scheme: "https",
  username: "root",
  password: "not-shown",
  trust: { mode: "pin" },
};
const expected = (change: Partial<ExpectedPowerShelf> = {}): ExpectedPowerShelf => ({
  id: "expected-1",
  version: 1,
  state: { name: "exploring" },
  stateSince: NOW,
  basis: 1,
  stateVersion: 1,
  outcome: null,
  bmc: { mac: "02:00:5e:10:00:01", address: "127.1.0.1", port: 8443 },
  serial: "SN1",
  name: "shelf-1",
  description: "top of rack",
  labels: { row: "7" },
  rackId: "rack-1",
  facts: { explored: null, exploredAt: null, certificateFingerprint: null },
  deviceId: null,
  existing: null,
  ...change,
});

interface Answer {
  readonly identify?: Inventory["identify"];
  readonly target?: () => Promise<BmcTarget>;
}

function explore(row: ExpectedPowerShelf, { identify, target }: Answer = {}) {
  return expectedPowerShelfHandlers.exploring(row, {
    provider: {
      name: "fake",
      can: {
        inventory: {
          identify: identify ?? (async () => identity),
          readInventory: async () => {
            throw new Error("the explorer needs no inventory");
          },
        },
      },
    },
    call: { signal: new AbortController().signal, mayTouchDevice: (wanted) => wanted, subject: "expected-1" },
    clock: { now: () => NOW, monotonic: () => 0 },
    target: target ?? (async () => bmc),
    exploreEvery: seconds(60),
  });
}
const notYet = (explored: ExploreResult, reason: string, cause: Cause, seen = {}) => ({
  type: "waiting",
  reason,
  after: 60_000,
  facts: { explored, exploredAt: NOW.toISOString(), ...seen },
  cause,
});

/** The rack is on record from its first device on, and looks at what it consists of now. */
const itsRack = [
  { type: "create", kind: "rack", id: "rack-1", row: { name: "rack-1" } },
  { type: "wake", kind: "rack", id: "rack-1" },
];

describe("exploring", () => {
  test("makes the shelf, named and placed as the site said, once the BMC is the expected one", async () => {
    const id = powerShelfIdOf(identity);
    expect(await explore(expected())).toEqual({
      type: "happened",
      event: "identified",
      facts: {
        explored: "linked",
        exploredAt: NOW.toISOString(),
        powerShelfId: id,
        certificateFingerprint: "AB:CD",
      },
      effects: [
        {
          type: "create",
          kind: "power_shelf",
          mustBeNew: true,
          id,
          row: {
            name: "shelf-1",
            description: "top of rack",
            labels: { row: "7" },
            rack_id: "rack-1",
            bmc_mac: "02:00:5e:10:00:01",
            bmc_address: "127.1.0.1",
            bmc_port: 8443,
            facts: { serial: "SN1", vendor: "Lite-On", model: "PS-1", certificateFingerprint: "AB:CD" },
          },
        },
        ...itsRack,
      ],
    });
  });

  test("names a shelf without a name by its id", async () => {
    expect(await explore(expected({ name: "" }))).toMatchObject({
      effects: [{ row: { name: powerShelfIdOf(identity) } }, ...itsRack],
    });
  });

  test("links the shelf that already has the MAC address, and makes none", async () => {
    expect(await explore(expected({ existing: byHand }))).toMatchObject({
      facts: { powerShelfId: "shelf-by-hand" },
      // It must still be there, and stay, when the link is written.
      effects: [{ type: "require", kind: "power_shelf", id: "shelf-by-hand", notDeleted: true }, ...itsRack],
    });
  });

  test("waits until a shelf that is marked for deletion is gone, instead of linking to it", async () => {
    const identify = vi.fn<Inventory["identify"]>();
    const row = expected({ existing: { ...byHand, markedForDeletion: true } });
    expect(await explore(row, { identify })).toMatchObject({
      type: "waiting",
      reason: expect.stringContaining("shelf-by-hand, which has this BMC, is marked for deletion"),
      facts: { explored: "pending" },
    });
    expect(identify).not.toHaveBeenCalled();
  });

  test("links nothing to a row that states no serial", async () => {
    expect(await explore(expected({ serial: "" }))).toMatchObject({ facts: { explored: "wrong_serial" } });
  });

  test("keeps the certificate that was seen first", async () => {
    const { facts } = expected();
    const row = expected({ facts: { ...facts, certificateFingerprint: "11:22" } });
    expect(await explore(row)).toMatchObject({ facts: { certificateFingerprint: "11:22" } });
  });

  test("of a shelf that says little of itself fills in what its id is made of, as the contract says", async () => {
    const mute = { serial: null, vendor: null, model: null };
    expect(await explore(expected(), { identify: async () => mute })).toMatchObject({
      event: "identified",
      effects: [
        {
          id: powerShelfIdOf({ serial: "shelf-1", vendor: "NVIDIA", model: "PowerShelf" }),
          row: { facts: { serial: null, vendor: null, model: null } },
        },
        ...itsRack,
      ],
    });
    expect(filledIn(exploredPowerShelf, identity, "shelf-1")).toEqual({
      serial: "SN1",
      vendor: "Lite-On",
      model: "PS-1",
    });
  });

  test("makes no shelf of one that states no serial under a row without a name", async () => {
    const identify = async () => ({ ...identity, serial: null });
    expect(await explore(expected({ name: "" }), { identify })).toMatchObject({
      reason: expect.stringContaining("reports no serial, and the row has no name"),
      facts: { explored: "failed" },
    });
  });

  test("waits for an address, and asks nobody meanwhile", async () => {
    const identify = vi.fn<Inventory["identify"]>();
    const row = expected({ bmc: { mac: "02:00:5e:10:00:01", address: null, port: null } });
    expect(await explore(row, { identify })).toEqual(
      notYet("pending", "no bmc_ip_address is given: update the row with one", {
        code: "endpoint_missing",
        facts: { at: "bmc" },
      }),
    );
    expect(identify).not.toHaveBeenCalled();
  });

  test("makes nothing of a BMC with another serial", async () => {
    expect(await explore(expected({ serial: "SN2" }))).toEqual(
      notYet(
        "wrong_serial",
        "the BMC at 127.1.0.1 reports serial SN1, expected SN2",
        { code: "wrong_identity", facts: { at: "bmc", address: "127.1.0.1", expected: "SN2", shown: "SN1" } },
        { certificateFingerprint: "AB:CD" },
      ),
    );
  });

  test.each<[DeviceCause, ExploreResult]>([
    ["unreachable", "unreachable"],
    ["busy", "unreachable"],
    ["timed_out", "unreachable"],
    ["credentials_rejected", "wrong_credentials"],
    ["sign_in_stopped", "wrong_credentials"],
    ["forbidden", "wrong_credentials"],
    ["protocol", "failed"],
    ["refused_by_device", "failed"],
  ])("shows a BMC that is %s as %s, and tries again", async (code, shown) => {
    const identify = async () => {
      throw new DeviceFailure(code, "bmc", "what the BMC did", { disposition: "retry" });
    };
    expect(await explore(expected(), { identify })).toEqual(
      notYet(shown, "what the BMC did", { code, facts: { at: "bmc" } }),
    );
  });

  test("of a BMC with another certificate than before says how it can be accepted", async () => {
    const identify = async () => {
      throw new DeviceFailure("certificate_changed", "bmc", "what the BMC showed");
    };
    const reason =
      "what the BMC showed. Update the row with its address and password to accept the certificate that the BMC shows next";
    expect(await explore(expected(), { identify })).toEqual(
      notYet("failed", reason, { code: "certificate_changed", facts: { at: "bmc" } }),
    );
  });

  test("leaves what is not the device's doing to the engine", async () => {
    const noCredentials = final("no credentials are stored");
    const target = async () => {
      throw noCredentials;
    };
    await expect(explore(expected(), { target })).rejects.toBe(noCredentials);
  });
});

describe("the id of a shelf", () => {
  /** By arithmetic on one big number, to check the table-driven way by another. */
  function idByArithmetic({ serial, vendor, model }: Parameters<typeof powerShelfIdOf>[0]): string {
    const digest = createHash("sha256").update(`s${serial}-b${vendor}-c${model}`).digest("hex");
    // 256 bits and 4 of padding make 52 digits of base 32, whose digits JavaScript writes as 0-9 and a-v.
    return `ps100rs${(BigInt(`0x${digest}`) << 4n).toString(32).padStart(52, "0")}`;
  }

  test("is this, for this shelf, today and ever after", () => {
    expect(powerShelfIdOf(identity)).toBe("ps100rss3tnu65mgcq2e4v6rbgpq1a9rmf7eouaoq76dphmnvab8vnemc2g");
  });

  test("has 59 characters, says rack and chassis serial, is a valid id, and is the same however it is computed", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (serial, vendor, model) => {
        const id = powerShelfIdOf({ serial, vendor, model });
        expect(id).toMatch(/^ps100rs[0-9a-v]{52}$/);
        expect(id).toHaveLength(59);
        expect(parsePowerShelfId(id, "id")).toBe(id);
        expect(id).toBe(idByArithmetic({ serial, vendor, model }));
      }),
    );
  });

  test("depends on serial, vendor and model alone", () => {
    const { certificateFingerprint: _, ...bare } = identity;
    expect(powerShelfIdOf(bare)).toBe(powerShelfIdOf(identity));
    for (const other of [{ serial: "SN2" }, { vendor: "Delta" }, { model: "PS-2" }]) {
      expect(powerShelfIdOf({ ...identity, ...other })).not.toBe(powerShelfIdOf(identity));
    }
  });
});
