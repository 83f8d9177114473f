import { expect, test } from "vitest";
import { allStores } from "./all-things.ts";

test("the states that mean trouble are these, and the tables say so", () => {
  const trouble = [...allStores.values()].map(({ lifecycle }) => [
    lifecycle.kind,
    Object.entries(lifecycle.states).flatMap(([name, spec]) => (spec.trouble ? [name] : [])),
  ]);
  expect(Object.fromEntries(trouble)).toEqual({
    power_shelf: ["error"],
    expected_power_shelf: [],
    machine: [], // its conditions say what is wrong with it
    run: ["FAILED"],
    install: ["install_failed"],
    batch: [],
    rack: ["error"],
    rack_firmware: ["failed"],
    switch: ["error"],
    expected_switch: [],
    host_reprovision: ["failed_firmware_upgrade"],
    expected_rack: [],
    fleet_node: ["offline", "quarantined"],
    fleet_allocation: ["failed", "release_failed"],
    fleet_task: ["failed", "expired"],
    restore_review: ["open"],
  });
});
