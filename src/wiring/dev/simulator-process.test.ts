import { expect, test } from "vitest";
import { takeSimulatorFlags } from "./simulator-process.ts";

test("flags of the simulator are handed to it, and all others stay", () => {
  expect(
    takeSimulatorFlags([
      "--sim-speed",
      "5",
      "--fault",
      "{}",
      "--redfish-port=0",
      "--fault",
      '{"a":1}',
      "--data-dir",
      "x",
    ]),
  ).toEqual({
    own: ["--fault", "{}", "--redfish-port=0", "--fault", '{"a":1}'],
    rest: ["--sim-speed", "5", "--data-dir", "x"],
  });
});
