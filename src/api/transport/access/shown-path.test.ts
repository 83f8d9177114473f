import { expect, test } from "vitest";
import { shownPath } from "./shown-path.ts";

test.each([
  ["/api/v1/nodes?token=canary", "/api/v1/nodes"],
  ["/api/v1/boot/canary", "/api/v1/boot/…"],
  ["/seeds/rack-1/canary/user-data", "/seeds/…"],
  ["/firmware/files/00/1/canary/bios.bin", "/firmware/…"],
  ["/internal/v1/nodes/n1/tasks/canary", "/internal/v1/nodes/…"],
  ["/healthz#canary", "/healthz"],
  ["/", "/"],
  ["", "/"],
  ["/forge.Forge/Version", "/forge.Forge/Version"],
  ["*", "/"],
])("of %s the log has %s", (url, shown) => {
  expect(shownPath(url)).toBe(shown);
});

test("however long it is, little of it is kept", () => {
  expect(shownPath(`/${"x".repeat(10_000)}/canary`).length).toBeLessThan(100);
  expect(shownPath(`/a.B/${"x".repeat(10_000)}`).length).toBeLessThan(200);
});
