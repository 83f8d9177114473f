import { describe, expect, test } from "vitest";
import { pathsThrough } from "../../../test/support/lifecycle-paths.ts";
import { follow, followOrRefuse } from "../../kernel/decide.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { ExpectedPowerShelf } from "./expected-power-shelf.ts";
import { expectedPowerShelfLifecycle } from "./lifecycle.ts";

const expected = (state: string): ExpectedPowerShelf => ({
  id: "expected-1",
  version: 1,
  state: { name: state },
  stateSince: new Date(0),
  basis: 1,
  stateVersion: 1,
  outcome: null,
  bmc: { mac: "02:00:5e:10:00:01", address: "127.1.0.1", port: 443 },
  serial: "SN1",
  name: "",
  description: "",
  labels: {},
  rackId: null,
  facts: { explored: null, exploredAt: null, certificateFingerprint: null },
  deviceId: null,
  existing: null,
});

test("the transitions of expected shelves are these, no more and no fewer", () => {
  expect(expectedPowerShelfLifecycle.transitions.map(([from, { owner, name }, to]) => [from, owner, name, to])).toEqual(
    [
      ["exploring", "handler", "identified", "linked"],
      ["exploring", "caller", "update", "exploring"],
      ["exploring", "caller", "remove", "(gone)"],
      ["linked", "other", "power_shelf_deleted", "detached"],
      ["linked", "caller", "update", "linked"],
      ["linked", "caller", "remove", "(gone)"],
      ["detached", "caller", "update", "exploring"],
      ["detached", "caller", "remove", "(gone)"],
    ],
  );
});

test("exploring is the only work, and it has an SLA", () => {
  const working = Object.entries(expectedPowerShelfLifecycle.states).filter(([, spec]) => "sla" in spec);
  expect(working.map(([name]) => name)).toEqual(["exploring"]);
  expect(expectedPowerShelfLifecycle.states.exploring).toMatchObject({ sla: minutes(15) });
});

describe("a row whose shelf was deleted", () => {
  test("is not explored again by itself", () => {
    expect(
      follow(expectedPowerShelfLifecycle, expected("detached"), { owner: "handler", name: "identified" }),
    ).toBeUndefined();
  });

  test("is explored again once it is updated", () => {
    expect(
      followOrRefuse(expectedPowerShelfLifecycle, expected("detached"), { owner: "caller", name: "update" }).to,
    ).toBe("exploring");
  });

  test.each(["exploring", "detached"])("and updated when %s, forgets which certificate its BMC showed", (state) => {
    const move = followOrRefuse(expectedPowerShelfLifecycle, expected(state), { owner: "caller", name: "update" });
    expect(move.facts).toEqual({ explored: "pending", certificateFingerprint: null });
  });

  test("does not become detached twice", () => {
    expect(() =>
      followOrRefuse(expectedPowerShelfLifecycle, expected("detached"), {
        owner: "other",
        name: "power_shelf_deleted",
      }),
    ).toThrow("expected_power_shelf expected-1 is detached: power_shelf_deleted is not possible");
  });
});

describe("a row driven along every path of the table goes where the table says", () => {
  const paths = pathsThrough<ExpectedPowerShelf, string>(expectedPowerShelfLifecycle);
  test.each(paths.map((path) => [path.map(({ row }) => row[1].name).join(", "), path] as const))("%s", (_, path) => {
    let at = expectedPowerShelfLifecycle.initial as string;
    for (const { row, from, to } of path) {
      const { owner, name } = row[1];
      if (owner === "controller") throw new Error("no row of this table is the controller's");
      const move = follow(expectedPowerShelfLifecycle, expected(at), { owner, name });
      expect(move).toMatchObject({ from, to: to ?? from, gone: to === undefined });
      at = move?.to ?? at;
    }
  });
});
