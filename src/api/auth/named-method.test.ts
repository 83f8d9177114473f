import { expect, test } from "vitest";
import { methodNamed } from "./named-method.ts";

const methods = [
  "baremetal.v1.RunService/StartRun",
  "millwright.v1.RackService/ListRacks",
  "millwright.v1.RackService/StartRackMaintenance",
  "millwright.v1.RackService/StartRackMaintenance include_assigned",
  "forge.Forge/StartRackMaintenance",
  "GET /api/v1/nodes/{id}",
  "GET /api/v1/nodes/stalled",
  "GET /files/*",
  "DELETE /api/v1/nodes/{id}",
];

test.each([
  ["StartRun", "baremetal.v1.RunService/StartRun"],
  [" RackService/StartRackMaintenance ", "millwright.v1.RackService/StartRackMaintenance"],
  ["v1.RackService/ListRacks", "millwright.v1.RackService/ListRacks"],
  ["StartRackMaintenance include_assigned", "millwright.v1.RackService/StartRackMaintenance include_assigned"],
  ["get /api/v1/nodes/n-1?x=1", "GET /api/v1/nodes/{id}"],
  ["GET /api/v1/nodes/{id}", "GET /api/v1/nodes/{id}"],
  ["GET /api/v1/nodes/stalled", "GET /api/v1/nodes/stalled"],
  ["GET /files/a/b", "GET /files/*"],
])("takes %s for %s", (text, method) => {
  expect(methodNamed({ methods }, text)).toBe(method);
});

test.each([
  ["", "is required"],
  ["StartRackMaintenance", "may be millwright.v1.RackService/StartRackMaintenance, forge.Forge/StartRackMaintenance"],
  ["Run", "is no method and no route"],
  ["tRun", "is no method"],
  ["GET /api/v1/nodes/", "is no method"],
  ["GET /api/v1/nodes/a/b", "is no method"],
])("refuses %j: %s", (text, why) => {
  expect(() => methodNamed({ methods }, text)).toThrow(why);
});
